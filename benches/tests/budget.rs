//! The budgets of allocations, which can be counted instead of timed, so that they hold on every machine.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use allocation_counter::measure;
use goondan::model::{DeltaSink, Model, ModelDelta, ModelRequest, ModelResponse};
use goondan::plugin::{Inspected, Library, Loaded};
use goondan::{Agent, BoxFuture, Instance, Result};
use goondan_benches::agents::{self, Layers};
use goondan_benches::by_hand::Conversation;
use goondan_benches::{runtime, step};
use goondan_libraries::Build;

/// A turn of 3 steps and 2 tool calls with 10 layers of each kind allocates no more often than this.
const TURN: u64 = 160;

/// Makes this number of layers of one kind.
type LayersOfKind = fn(usize) -> Layers;

/// Returns how often an instance allocates in a turn, after `warm_up` turns.
fn allocations(layers: Layers, calls: usize, warm_up: usize) -> u64 {
    let runtime = runtime();
    let instance = runtime.block_on(agents::instance(layers, calls));
    let turn = |instance: &Instance| {
        runtime.block_on(instance.run("hi")).unwrap();
    };
    (0..warm_up).for_each(|_| turn(&instance));
    median(|| turn(&instance))
}

/// Returns the median of the allocations of a turn: now and then a table grows.
fn median(mut turn: impl FnMut()) -> u64 {
    let mut counts: Vec<_> = (0..51).map(|_| measure(&mut turn).count_total).collect();
    counts.sort_unstable();
    counts[25]
}

/// Returns how often the loop by hand allocates in a turn.
fn allocations_by_hand(layers: Layers, calls: usize) -> u64 {
    let (runtime, mut conversation) = (runtime(), Conversation::new(agents::by_hand(layers, calls)));
    median(|| {
        runtime.block_on(conversation.turn("hi")).unwrap();
    })
}

#[test]
fn a_turn_allocates_rarely_and_the_same_over_a_long_history() {
    let layers = |keep| Layers { turn: 10, step: 10, tool_call: 10, keep, ..Layers::default() };
    let short = allocations(layers(100), 2, 40);
    let long = allocations(layers(10_000), 2, 1_700);
    let by_hand = allocations_by_hand(layers(0), 2);
    println!("a turn: {short} allocations over 100 messages, {long} over 10,000; by hand {by_hand}");
    assert!(short <= TURN, "{short}");
    assert!(long.abs_diff(short) <= 2, "{short} over 100 messages, {long} over 10,000");
}

// OBSERVE-01
#[test]
fn an_observer_that_wants_nothing_allocates_nothing() {
    let layers = Layers { turn: 10, step: 10, tool_call: 10, keep: 100, ..Layers::default() };
    let [without, asked, watched] = [layers, Layers { asked: true, ..layers }, Layers { watched: true, ..layers }]
        .map(|layers| allocations(layers, 2, 40));
    println!("a turn: {without} allocations, {asked} beside an observer that wants nothing, {watched} when watched");
    assert_eq!(without, asked);
    assert!(watched > without);
}

#[test]
fn a_projection_allocates_the_same_over_a_long_history() {
    let layers = |projecting, keep| Layers { projecting, keep, ..Layers::default() };
    let turns = |projecting| {
        [(100, 120), (10_000, 5_100)].map(|(keep, warm_up)| allocations(layers(projecting, keep), 0, warm_up))
    };
    let [plain, projected] = [turns(0), turns(1)];
    println!("allocations of a turn over 100 and 10,000 messages: {plain:?}, with a projected message {projected:?}");
    assert!(projected[0].abs_diff(projected[1]) <= 2, "{projected:?}");
    assert!(projected[0] - plain[0] <= 12, "{plain:?}, {projected:?}");
}

#[test]
fn a_layer_allocates_its_own_future_and_nothing_else() {
    let kinds: [(&str, LayersOfKind, usize); 3] = [
        ("turn", |depth| Layers { turn: depth, keep: 20, ..Layers::default() }, 0),
        ("step", |depth| Layers { step: depth, keep: 20, ..Layers::default() }, 0),
        ("tool call", |depth| Layers { tool_call: depth, keep: 20, ..Layers::default() }, 1),
    ];
    for (kind, layers, calls) in kinds {
        let [few, many] = [1, 65].map(|depth| allocations(layers(depth), calls, 40));
        assert_eq!(many - few, 64, "{kind}");
    }
}

// REVIEW-01
#[test]
fn a_reviewer_that_keeps_and_a_transformer_that_changes_nothing_allocate_rarely() {
    let layers = |reviewing| Layers { reviewing, keep: 20, ..Layers::default() };
    let [few, many] = [1, 65].map(|depth| allocations(layers(depth), 0, 40));
    println!("a layer that reviews: {} allocations", (many - few) as f64 / 64.0);
    assert!(many - few <= 64 + 8, "its own future, and now and then more room for the others: {few}, {many}");
    for transforming in [0, 1, 3] {
        let layers = |pieces| Layers { transforming, pieces, keep: 20, ..Layers::default() };
        let [few, many] = [1_000, 10_000].map(|pieces| allocations(layers(pieces), 0, 40));
        println!("{transforming} transformers: {few} allocations in a turn of 1,000 pieces, {many} in one of 10,000");
        assert!((few..=few + 4).contains(&many), "{transforming}: {few}, {many}");
    }
}

/// Returns how often a run of `depth` layers of a library allocates, in the library and in the host.
fn allocations_of_loaded(library: &Loaded, name: &str, depth: usize) -> u64 {
    let extension = |name| library.extension(Some(name)).unwrap();
    let runtime = runtime();
    let chain = runtime.block_on(step::chain_of([(extension("allocations"), 1), (extension(name), depth)]));
    let mut step = step::idle_step(100);
    let mut run = || {
        let in_host = measure(|| drop(runtime.block_on(chain.run(&mut step)).unwrap())).count_total;
        in_host + step.metadata["allocations"].as_u64().unwrap()
    };
    run();
    run()
}

#[test]
fn a_loaded_layer_allocates_its_own_future_and_one_on_the_side_of_the_host() {
    let library = Build::new("abi-fixture-counting").profile("release").run(env!("CARGO_TARGET_TMPDIR"));
    let library = Library::inspect(library).and_then(Inspected::load).unwrap();
    for (name, most) in [("noop", 2), ("light", 6)] {
        // Fewer layers than the library pools memory blocks for.
        let [few, many] = [1, 33].map(|depth| allocations_of_loaded(&library, name, depth));
        println!("{name}: {} allocations", (many - few) as f64 / 32.0);
        assert!(many - few <= 32 * most, "{name}: {few}, {many}");
    }
}

/// A model that sends a piece again and again, and answers with all of its text.
struct Piecewise {
    pieces: usize,
    piece: ModelDelta<'static>,
}

impl Model for Piecewise {
    fn generate<'a>(&'a self, _: ModelRequest<'a>, deltas: DeltaSink<'a>) -> BoxFuture<'a, Result<ModelResponse>> {
        Box::pin(async move {
            (0..self.pieces).for_each(|_| deltas.send(self.piece));
            Ok(ModelResponse::text("piece".repeat(self.pieces)))
        })
    }
}

#[test]
fn a_piece_of_an_answer_allocates_nothing_when_nothing_watches() {
    let text = |text| ModelDelta::Text { part: 0, text };
    // The text of an answer grows ten times as long, which doubles its memory four times at most. It is the only part
    // that is kept until the answer is complete.
    for (piece, growth) in [
        (text("piece"), 4),
        (text(""), 0),
        (ModelDelta::Reasoning { part: 0, text: "piece" }, 0),
        (ModelDelta::Arguments { part: 0, json: "piece" }, 0),
    ] {
        let runtime = runtime();
        let [few, many] = [1_000, 10_000].map(|pieces| {
            let agent = Agent::builder("bench").model(Piecewise { pieces, piece }).build().unwrap();
            let instance = runtime.block_on(agent.instance("bench")).unwrap();
            median(|| drop(runtime.block_on(instance.run("hi")).unwrap()))
        });
        println!("{piece:?}: {few} allocations in a turn of 1,000 pieces, {many} in one of 10,000");
        assert!((few..=few + growth).contains(&many), "{piece:?}: {few}, {many}");
    }
}
