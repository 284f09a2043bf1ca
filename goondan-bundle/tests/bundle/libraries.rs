//! Extensions in libraries: the files that entries refer to, and the calls of `Libraries`.

use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::task::{Context, Poll, Waker};

use goondan_bundle::{Bundle, Declared, DeclaredTool, Diagnostic, Entry, Libraries, LibraryEntry};
use goondan_core::{Error, ErrorCode, ExtensionDescriptor, LayerInfo, MiddlewareKind, MiddlewareOptions, Result};
use goondan_covers::covers;
use goondan_runtime::MemoryStore;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::fixture::{AGENT, EXTENSION, MODEL, bundle_of, code};

/// Test double for libraries: returns the schema and the layer, and records the entries that it was called with.
#[derive(Default)]
struct FakeLibraries {
    schema: Option<Value>,
    layer: Option<MiddlewareOptions>,
    tools: Vec<DeclaredTool>,
    broken: bool,
    guard: bool,
    files: Mutex<Vec<LibraryEntry>>,
}

impl FakeLibraries {
    fn record(&self, library: &LibraryEntry) -> Result<()> {
        self.files.lock().unwrap().push(library.clone());
        let error = Error::new(ErrorCode::EXT_COMPAT, "built for ABI 7.0; this program speaks ABI 1.3");
        if self.broken { Err(error.suggest("build it again")) } else { Ok(()) }
    }
}

impl Libraries for FakeLibraries {
    fn declared(&self, library: &LibraryEntry) -> Result<Declared> {
        let layers = self
            .layer
            .iter()
            .map(|options| LayerInfo::new(library.name.clone(), MiddlewareKind::Step, options.clone()));
        self.record(library)?;
        let mut declared = Declared::new(layers.collect(), self.tools.clone());
        (declared.guard, declared.config_schema) = (self.guard, self.schema.clone());
        Ok(declared)
    }

    fn load(&self, library: &LibraryEntry) -> Result<&'static ExtensionDescriptor> {
        self.record(library)?;
        Err(Error::new(ErrorCode::EXT_LOAD, "a stand-in holds nothing"))
    }
}

const USE: &str = "  extensions: [ { ref: Extension/message-window } ]\n";

/// A bundle whose extension has this entry, with a file for the library.
fn bundle(entry: &str) -> TempDir {
    let extension = EXTENSION.replace("linked:message-window", entry);
    let directory = bundle_of(&[MODEL, &extension, &format!("{AGENT}{USE}")]);
    fs::create_dir(directory.path().join("plugins")).unwrap();
    fs::write(platform_file(directory.path()), "").unwrap();
    directory
}

fn platform_file(root: &Path) -> std::path::PathBuf {
    root.join("plugins").join(format!("{DLL_PREFIX}window{DLL_SUFFIX}"))
}

fn entry(bundle: &Bundle) -> &LibraryEntry {
    match &bundle.extensions().next().unwrap().entry {
        Entry::Library(library) => library,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn only_error(directory: &TempDir, libraries: &dyn Libraries) -> Diagnostic {
    let errors = Bundle::reader().libraries(libraries).check(directory.path()).unwrap_err();
    assert_eq!(errors.len(), 1, "{errors}");
    errors.first().clone()
}

#[test]
#[covers("LOAD-04")]
fn an_entry_is_a_path_in_the_bundle_of_a_file_with_the_name_of_this_platform() {
    for written in ["./plugins/window", "plugins/window", &format!("./plugins/{DLL_PREFIX}window{DLL_SUFFIX}")] {
        let directory = bundle(written);
        let bundle = Bundle::load(directory.path()).unwrap();
        assert_eq!(entry(&bundle).file, platform_file(directory.path()), "{written}");
        assert_eq!((entry(&bundle).written.as_str(), entry(&bundle).name.as_str()), (written, "message-window"));
    }
}

#[test]
fn an_entry_does_not_lead_out_of_the_bundle_unless_the_operator_allows_it() {
    let elsewhere = bundle("linked:message-window");
    let absolute = platform_file(elsewhere.path());
    let directory = bundle(absolute.to_str().unwrap());
    for (directory, words) in [
        (bundle("../plugins/window"), "must not lead out of the bundle"),
        (bundle("./plugins/../../window"), "must not lead out of the bundle"),
        (bundle("./plugins/other"), "names a library that does not exist"),
        (bundle("window"), "or a path to a library"),
    ] {
        let error = only_error(&directory, &FakeLibraries::default());
        assert_eq!((code(&error), error.path.as_str()), ("E_EXT_LOAD", "spec.entry"), "{error}");
        assert!(error.message.contains(words), "{error}");
    }
    let error = only_error(&directory, &FakeLibraries::default());
    assert!(error.suggestion.contains("--allow-absolute-plugins"), "{error}");
    let bundle = Bundle::reader().allow_absolute(true).load(directory.path()).unwrap();
    assert_eq!(entry(&bundle).file, absolute);
}

#[test]
fn a_digest_is_64_digits_and_pins_a_library() {
    let right = "0123456789abcdef".repeat(4);
    let with = |entry: &str, digest: &str| bundle(&format!("{entry}\"\n  sha256: \"{digest}"));
    let loaded = Bundle::load(with("./plugins/window", &right).path()).unwrap();
    assert_eq!(entry(&loaded).sha256.as_ref(), Some(&right));
    for (directory, words) in [
        (with("./plugins/window", "0a"), "64 lower-case hexadecimal digits"),
        (with("./plugins/window", &right.to_uppercase()), "64 lower-case hexadecimal digits"),
        (with("linked:message-window", &right), "part of the program"),
    ] {
        let error = only_error(&directory, &FakeLibraries::default());
        assert_eq!((code(&error), error.path.as_str()), ("E_CONFIG_SCHEMA_INVALID", "spec.sha256"), "{error}");
        assert!(error.message.contains(words), "{error}");
    }
}

#[test]
#[covers("RULE-02")]
fn declarations_of_a_library_are_checked_at_its_entry() {
    let directory = bundle("./plugins/window");
    let broken = FakeLibraries { broken: true, ..FakeLibraries::default() };
    let error = only_error(&directory, &broken);
    assert_eq!(error.to_string().lines().count(), 2, "{error}");
    assert_eq!((code(&error), error.place.unwrap().to_string().as_str()), ("E_EXT_COMPAT", "10:10"), "{error}");
    assert_eq!(error.suggestion, "build it again");

    let schema = json!({ "properties": { "maxMessages": { "maximum": 9 } } });
    let error = only_error(&directory, &FakeLibraries { schema: Some(schema), ..FakeLibraries::default() });
    assert_eq!((code(&error), error.path.as_str()), ("E_EXT_CONFIG", "spec.config.maxMessages"), "{error}");
    let error =
        only_error(&directory, &FakeLibraries { schema: Some(json!({ "type": 5 })), ..FakeLibraries::default() });
    assert_eq!((code(&error), error.path.as_str()), ("E_SCHEMA_INVALID", "spec.entry"), "{error}");
}

#[test]
fn a_value_from_the_environment_is_checked_by_its_type_only() {
    let bundle = |keys: &str| {
        let directory = bundle("./plugins/window");
        let file = directory.path().join("goondan.yaml");
        let text = fs::read_to_string(&file).unwrap();
        fs::write(&file, text.replace("maxMessages: 40", keys)).unwrap();
        directory
    };
    let schema = json!({ "properties": {
        "maxMessages": { "type": "integer" }, "key": { "type": "string", "minLength": 99 }
    } });
    let fake = FakeLibraries { schema: Some(schema), ..FakeLibraries::default() };
    let fits = bundle("key: { valueFrom: { env: NO_SUCH_VARIABLE } }");
    let read = Bundle::reader().libraries(&fake).load(fits.path()).unwrap();
    assert_eq!(build(&read, Some(&fake)).code(), &ErrorCode::CONFIG_VALUE_NOT_FOUND);
    let error = only_error(&bundle("maxMessages: { valueFrom: { env: NO_SUCH_VARIABLE } }"), &fake);
    assert_eq!((code(&error), error.path.as_str()), ("E_EXT_CONFIG", "spec.config.maxMessages"), "{error}");
}

#[test]
#[covers("ORDER-11")]
fn layers_that_a_library_declares_are_ordered() {
    let directory = bundle("./plugins/window");
    let lenient =
        FakeLibraries { layer: Some(MiddlewareOptions::priority(0).before("nobody?")), ..FakeLibraries::default() };
    assert!(Bundle::reader().libraries(&lenient).check(directory.path()).is_ok());
    let fake =
        FakeLibraries { layer: Some(MiddlewareOptions::priority(0).before("nobody")), ..FakeLibraries::default() };
    let error = only_error(&directory, &fake);
    assert_eq!((code(&error), error.path.as_str()), ("E_EXT_ORDER", "spec.extensions[0].ref"), "{error}");
}

#[test]
#[covers("FAIL-01")]
fn the_failures_of_a_library_that_guards_are_not_skipped() {
    let directory = bundle("./plugins/window");
    let file = directory.path().join("goondan.yaml");
    let text = fs::read_to_string(&file).unwrap();
    let skips = text.replace("ref: Extension/message-window", "ref: Extension/message-window, onError: skip");
    assert_ne!(skips, text);
    fs::write(&file, skips).unwrap();
    let [fake, guard] = [false, true].map(|guard| FakeLibraries { guard, ..FakeLibraries::default() });
    assert!(Bundle::reader().libraries(&fake).check(directory.path()).is_ok());
    let error = only_error(&directory, &guard);
    assert_eq!((code(&error), error.path.as_str()), ("E_EXT_GUARD", "spec.extensions[0].onError"), "{error}");
}

#[test]
fn a_library_without_the_schema_of_its_config_is_a_warning() {
    let directory = bundle("./plugins/window");
    let fits = FakeLibraries { schema: Some(json!({ "type": "object" })), ..FakeLibraries::default() };
    assert_eq!(Bundle::reader().libraries(&fits).load(directory.path()).unwrap().warnings(), []);
    let bundle = Bundle::reader().libraries(&FakeLibraries::default()).load(directory.path()).unwrap();
    let [warning] = bundle.warnings() else { panic!("{:?}", bundle.warnings()) };
    assert!(warning.message.contains("was not checked") && warning.suggestion.contains("plugin pack"), "{warning}");
    assert_eq!(Bundle::load(directory.path()).unwrap().warnings(), [], "without `Libraries`, no schema is missing");
}

/// The error of building, whose future never waits in these tests.
fn build(bundle: &Bundle, libraries: Option<&dyn Libraries>) -> Error {
    let mut building: std::pin::Pin<Box<dyn Future<Output = _>>> = match libraries {
        Some(libraries) => Box::pin(bundle.build_with(MemoryStore::new(), libraries)),
        None => Box::pin(bundle.build(MemoryStore::new())),
    };
    match building.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(built) => built.unwrap_err(),
        Poll::Pending => panic!("building waits"),
    }
}

#[test]
#[covers("ERR-02", "LOAD-09")]
fn building_loads_the_library_and_its_error_has_the_place_of_the_entry() {
    let directory = bundle("./plugins/window");
    let bundle = Bundle::load(directory.path()).unwrap();
    let at = format!("{}:10:10: the extension `message-window`: ", directory.path().join("goondan.yaml").display());
    let error = build(&bundle, None);
    assert_eq!(error.code(), &ErrorCode::EXT_LOAD);
    assert_eq!(error.message(), format!("{at}this program loads no libraries"));
    let fake = FakeLibraries { broken: true, ..FakeLibraries::default() };
    let error = build(&bundle, Some(&fake));
    assert_eq!(error.code(), &ErrorCode::EXT_COMPAT);
    assert_eq!(error.message(), format!("{at}built for ABI 7.0; this program speaks ABI 1.3"));
    assert_eq!(error.suggestion(), Some("build it again"));
    assert_eq!(fake.files.into_inner().unwrap(), [entry(&bundle).clone()]);
}

#[test]
fn an_entry_may_name_one_of_several_extensions_of_a_library() {
    let directory = bundle("./plugins/window#message-window-2");
    let loaded = Bundle::load(directory.path()).unwrap();
    assert_eq!(entry(&loaded).file, platform_file(directory.path()));
    let extension = entry(&loaded).extension.as_ref().map(goondan_core::ExtensionName::as_str);
    assert_eq!((extension, entry(&loaded).name.as_str()), (Some("message-window-2"), "message-window"));
    for wrong in ["./plugins/window#", "./plugins/window#Not A Name"] {
        let error = only_error(&bundle(wrong), &FakeLibraries::default());
        assert_eq!((code(&error), error.path.as_str()), ("E_CONFIG_SCHEMA_INVALID", "spec.entry"), "{error}");
    }
}

#[test]
fn a_tool_whose_input_no_object_can_fit_is_an_error_and_one_without_a_description_a_warning() {
    let directory = bundle("./plugins/window");
    let tool = |schema: Value, description: &str| FakeLibraries {
        schema: Some(json!({})),
        tools: vec![DeclaredTool::new("window__echo", description, Some(schema))],
        ..FakeLibraries::default()
    };
    let error = only_error(&directory, &tool(json!({ "type": "string" }), "Says it again."));
    assert_eq!((code(&error), error.path.as_str()), ("E_SCHEMA_INVALID", "spec.entry"), "{error}");
    assert!(error.message.contains("`window__echo` is of the type `string`"), "{error}");
    let scalar = FakeLibraries { schema: Some(json!({ "type": "integer" })), ..FakeLibraries::default() };
    assert_eq!(code(&only_error(&directory, &scalar)), "E_SCHEMA_INVALID");

    let fake = tool(json!({ "type": "object" }), " ");
    let loaded = Bundle::reader().libraries(&fake).load(directory.path()).unwrap();
    let [warning] = loaded.warnings() else { panic!("{:?}", loaded.warnings()) };
    assert!(warning.message.contains("the tool `window__echo` of the extension `message-window`"), "{warning}");
}

static STRICT: ExtensionDescriptor = ExtensionDescriptor::new(
    "strict",
    &|| {
        json!({
            "type": "object",
            "properties": { "maxMessages": { "type": "integer", "maximum": 9 }, "nested": {} },
            "additionalProperties": false,
        })
    },
    &|_, _| Box::pin(async { Ok(()) }),
)
.package("strict", "0.1.0");

/// A library whose schema is not in its file, so that `check` does not know it.
struct Unpacked;

impl Libraries for Unpacked {
    fn declared(&self, _: &LibraryEntry) -> Result<Declared> {
        Ok(Declared::default())
    }

    fn load(&self, _: &LibraryEntry) -> Result<&'static ExtensionDescriptor> {
        Ok(&STRICT)
    }
}

#[test]
fn a_config_that_does_not_fit_has_its_place_also_when_only_building_finds_it() {
    let directory = bundle("./plugins/window");
    let bundle = Bundle::reader().libraries(&Unpacked).load(directory.path()).unwrap();
    let error = build(&bundle, Some(&Unpacked));
    assert_eq!(error.code(), &ErrorCode::EXT_CONFIG);
    let at = format!("{}:11:26: ", directory.path().join("goondan.yaml").display());
    let message = "the config of the extension `message-window` does not fit its schema: `maxMessages`: 40";
    assert!(error.message().starts_with(&format!("{at}{message}")), "{error:?}");

    let file = directory.path().join("goondan.yaml");
    let text = fs::read_to_string(&file).unwrap().replace("maxMessages: 40, nested", "nested");
    let used = USE.replace(" } ]", ", config: { maxMesages: 3 } } ]");
    fs::write(&file, text.replace(USE, &used)).unwrap();
    let bundle = Bundle::reader().libraries(&Unpacked).load(directory.path()).unwrap();
    let error = build(&bundle, Some(&Unpacked));
    assert!(error.message().starts_with(&format!("{}:18:", file.display())), "{error:?}");
    assert_eq!(error.suggestion(), Some("write `maxMessages`"));
}
