//! Target `script`: any bytes as the script of a scripted model.

use std::fs;

use goondan::Agent;
use goondan::bundle::read_yaml;
use goondan::model::{ScriptItem, ScriptedModel};

use crate::block_on;

/// Reads `data` as a script and runs a turn with it. If it is not a script, the error names the file and a remedy.
pub fn script(data: &[u8]) {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("script.yaml");
    fs::write(&file, data).expect("a file in it");
    match read_yaml::<Vec<ScriptItem>>(&file) {
        Ok(items) => block_on(async {
            let agent = Agent::builder("bot").model(ScriptedModel::new(items)).build();
            let instance = agent.expect("an agent").instance("fuzz").await.expect("an instance");
            // Scripts may fail on purpose, or end before the turn does.
            _ = instance.run("hello").await;
            instance.close().await.expect("whatever was said can be stored");
        }),
        Err(error) => {
            assert!(error.message().contains("script.yaml"), "{error:?}");
            assert!(error.suggestion().is_some(), "{error:?}");
        }
    }
}
