//! ASK-01, ASK-03: up to five calls of one answer, of which some are asked about, decided in every order. What runs, and
//! what the model reads, is compared with a model of the rules.

use conformance_extensions::asking::Questioning;
use goondan::decision::Decision;
use goondan::middleware::FinishReason;
use goondan::model::{ScriptItem, ScriptedModel};
use goondan::{Agent, Map, json};
use goondan_covers::{both_linkages, covers, interruptible};
use goondan_libraries::{is_long_run, runs};

use crate::asking::{ran, results};
use crate::linkage::Extended;
use crate::support::Log;

const TOOLS: [&str; 3] = ["look", "set", "act"];

#[derive(Clone, Copy, Debug, PartialEq)]
enum Verdict {
    Approve,
    Reject,
    Edit,
}

/// A call: its tool, and what is decided about it if it is asked about. Its argument is its place.
#[derive(Clone, Copy, Debug)]
struct Call {
    tool: &'static str,
    asks: Option<Verdict>,
}

#[derive(Debug)]
struct Case {
    calls: Vec<Call>,
    /// The calls that are decided, in this order.
    order: Vec<usize>,
    /// Whether they are decided at once.
    together: bool,
}

/// What is to happen: what has run when the turn waits, what runs then, and what the model reads of each call.
#[derive(Debug, PartialEq)]
struct Expected {
    before: Vec<String>,
    after: Vec<String>,
    read: Vec<String>,
}

impl Case {
    /// The rules.
    fn expected(&self) -> Expected {
        let run = |(place, call): (usize, &Call)| match call.asks {
            Some(Verdict::Reject) => None,
            Some(Verdict::Edit) => Some(format!("{} {}", call.tool, place + 50)),
            _ => Some(format!("{} {place}", call.tool)),
        };
        let read = |(place, call): (usize, &Call)| match call.asks {
            Some(Verdict::Reject) => "error E_TOOL_REJECTED: no".to_owned(),
            Some(Verdict::Edit) => (place + 50).to_string(),
            _ => place.to_string(),
        };
        let side_by_side = self.calls.len() > 1 && self.calls.iter().all(|call| call.tool == "look");
        let numbered = || self.calls.iter().enumerate();
        let first = self.calls.iter().position(|call| call.asks.is_some()).unwrap_or(self.calls.len());
        // Calls that only read run beside one that waits, and those behind it run again.
        let before = numbered().filter(|(place, call)| call.asks.is_none() && (side_by_side || *place < first));
        Expected {
            before: before.filter_map(run).collect(),
            after: numbered().skip(first).filter_map(run).collect(),
            read: numbered().map(read).collect(),
        }
    }

    #[interruptible]
    async fn happens(&self) -> Expected {
        let log = Log::new();
        let asked: Vec<_> = (0..self.calls.len()).filter(|place| self.calls[*place].asks.is_some()).collect();
        let calls = self.calls.iter().enumerate();
        let calls = calls.map(|(place, call)| (format!("questioning__{}", call.tool), json!({ "x": place })));
        let model = ScriptedModel::new([ScriptItem::calls(calls), ScriptItem::say("done")]);
        let agent = Agent::builder("assistant").model(model);
        let agent = agent.with::<Questioning>(json!({ "log": log, "asksX": asked })).build().unwrap();
        let instance = agent.instance("test").await.unwrap();
        let mut result = instance.run("go").await.unwrap();
        let lines = log.take();
        let before = ran(&lines).into_iter().map(str::to_owned).collect();
        let waits: Vec<_> = result.waits().iter().map(|wait| wait.args["x"].as_u64().unwrap() as usize).collect();
        assert_eq!(waits, asked, "{self:?}");
        let ids: Vec<_> = result.waits().iter().map(|wait| wait.call.clone()).collect();
        let decide = |place: &usize| {
            let call = ids[asked.iter().position(|known| known == place).unwrap()].clone();
            match self.calls[*place].asks.unwrap() {
                Verdict::Approve => Decision::approve(call),
                Verdict::Reject => Decision::reject(call, "no"),
                Verdict::Edit => {
                    Decision::approve(call).with_args(Map::from_iter([("x".to_owned(), (place + 50).into())]))
                }
            }
        };
        let decisions: Vec<_> = self.order.iter().map(decide).collect();
        let rounds: Vec<_> = decisions.chunks(if self.together { decisions.len().max(1) } else { 1 }).collect();
        for (round, decisions) in rounds.iter().enumerate() {
            assert_eq!(result.finish_reason(), FinishReason::Suspended, "{self:?}");
            assert!(round == 0 || ran(&log.take()).is_empty(), "{self:?}: something ran before all was decided");
            result = instance.decide(decisions.to_vec()).await.unwrap();
        }
        assert_eq!(result.text(), "done", "{self:?}");
        let lines = log.take();
        let after = ran(&lines).into_iter().map(str::to_owned).collect();
        let read = results(&instance).await.into_iter().map(|(_, text)| text);
        let read = read.map(|text| text.lines().next().unwrap_or_default().to_owned()).collect();
        instance.close().await.unwrap();
        Expected { before, after, read }
    }

    async fn check(&self) {
        let (mut expected, mut happened) = (self.expected(), self.happens().await);
        if self.calls.iter().all(|call| call.tool == "look") {
            // Side by side, in any order.
            for runs in [&mut expected.before, &mut expected.after, &mut happened.before, &mut happened.after] {
                runs.sort();
            }
        }
        assert_eq!(happened, expected, "{self:?}");
    }
}

/// Returns every order of some calls.
fn orders(calls: &[usize]) -> Vec<Vec<usize>> {
    let Some((first, rest)) = calls.split_first() else { return vec![Vec::new()] };
    let insert = |order: Vec<usize>| {
        (0..=order.len()).map(move |at| {
            let mut order = order.clone();
            order.insert(at, *first);
            order
        })
    };
    orders(rest).into_iter().flat_map(insert).collect()
}

/// Returns every case of so many calls.
fn cases(calls: usize) -> impl Iterator<Item = Case> {
    // Each call has one of three tools, and is not asked about, or one of three things is decided.
    (0..12_usize.pow(calls as u32)).flat_map(move |number| {
        let call = |place: u32| {
            let kind = number / 12_usize.pow(place) % 12;
            let asks = [None, Some(Verdict::Approve), Some(Verdict::Reject), Some(Verdict::Edit)][kind / 3];
            Call { tool: TOOLS[kind % 3], asks }
        };
        let calls: Vec<_> = (0..calls as u32).map(call).collect();
        let asked: Vec<_> = (0..calls.len()).filter(|place| calls[*place].asks.is_some()).collect();
        let case = move |order: Vec<usize>| {
            let calls = calls.clone();
            [false, true].map(move |together| Case { calls: calls.clone(), order: order.clone(), together })
        };
        orders(&asked).into_iter().flat_map(case)
    })
}

#[both_linkages]
#[covers("ASK-01", "ASK-03", "PAIR-01")]
async fn calls_that_are_decided_in_every_order_do_what_the_rules_say() {
    let mut random = fastrand::Rng::with_seed(37);
    for calls in 1..=3 {
        for case in cases(calls) {
            // Of two calls there are 450, and of three 19,000.
            if is_long_run() || random.usize(..[1, 3, 200][calls - 1]) == 0 {
                case.check().await;
            }
        }
    }
    for _ in 0..runs(60) {
        let calls: Vec<_> = (0..random.usize(4..=5))
            .map(|_| {
                let asks =
                    [None, Some(Verdict::Approve), Some(Verdict::Reject), Some(Verdict::Edit)][random.usize(..4)];
                // Answers that only read are few otherwise.
                Call { tool: TOOLS[random.usize(..3)], asks }
            })
            .collect();
        let calls: Vec<_> = match random.usize(..4) {
            0 => calls.into_iter().map(|call| Call { tool: "look", ..call }).collect(),
            _ => calls,
        };
        let mut order: Vec<_> = (0..calls.len()).filter(|place| calls[*place].asks.is_some()).collect();
        random.shuffle(&mut order);
        Case { calls, order, together: random.bool() }.check().await;
    }
}
