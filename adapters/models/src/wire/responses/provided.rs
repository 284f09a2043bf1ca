//! Tools that OpenAI defines and programs run: their calls, and the outputs of these.

use goondan_core::ToolOutput;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

/// A tool whose calls are items of their own type.
#[derive(Debug)]
pub(super) struct Provided {
    /// The type of the tool.
    pub(super) tool: &'static str,
    /// The type of a call.
    pub(super) call: &'static str,
    output: &'static str,
    /// The member of a call with the arguments.
    pub(super) arguments: &'static str,
}

const APPLY_PATCH: Provided = Provided {
    tool: "apply_patch",
    call: "apply_patch_call",
    output: "apply_patch_call_output",
    arguments: "operation",
};
const SHELL: Provided =
    Provided { tool: "shell", call: "shell_call", output: "shell_call_output", arguments: "action" };
const LOCAL_SHELL: Provided =
    Provided { tool: "local_shell", call: "local_shell_call", output: "local_shell_call_output", arguments: "action" };

impl Provided {
    /// Returns the tool that items of this type call.
    pub(super) fn of_call(kind: &str) -> Option<&'static Self> {
        [&APPLY_PATCH, &SHELL, &LOCAL_SHELL].into_iter().find(|provided| provided.call == kind)
    }

    /// Returns the tool that the part with this rest calls.
    pub(super) fn of_rest(rest: Option<&Map<String, Value>>) -> Option<&'static Self> {
        Self::of_call(rest?.get("type")?.as_str()?)
    }
}

/// The output of a call, in the form that its tool has.
pub(super) struct Output<'a> {
    pub(super) provided: &'static Provided,
    pub(super) output: &'a ToolOutput,
    pub(super) is_error: bool,
    /// The arguments of the call.
    pub(super) input: &'a Value,
}

impl Output<'_> {
    /// Writes the item with the output of the call `id`.
    pub(super) fn serialize<S: Serializer>(&self, id: &str, serializer: S) -> Result<S::Ok, S::Error> {
        let mut item = serializer.serialize_map(None)?;
        item.serialize_entry("type", self.provided.output)?;
        match self.provided.tool {
            "local_shell" => {
                // It goes by the id of the call.
                item.serialize_entry("id", id)?;
                item.serialize_entry("output", &self.output.to_text())?;
            }
            "shell" => {
                item.serialize_entry("call_id", id)?;
                if let Some(most) = self.input.get("max_output_length").filter(|most| most.is_number()) {
                    item.serialize_entry("max_output_length", most)?;
                }
                item.serialize_entry("output", &Commands(self))?;
            }
            _ => {
                item.serialize_entry("call_id", id)?;
                item.serialize_entry("status", if self.is_error { "failed" } else { "completed" })?;
                item.serialize_entry("output", &self.output.to_text())?;
            }
        }
        item.end()
    }
}

/// The outputs of the commands of a shell: a list that the tool has replied, or one that its text becomes.
struct Commands<'a>(&'a Output<'a>);

impl Serialize for Commands<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let is_command = |value: &Value| value.get("stdout").is_some() && value.get("outcome").is_some();
        match self.0.output {
            ToolOutput::Json(Value::Array(commands)) if !commands.is_empty() && commands.iter().all(is_command) => {
                commands.serialize(serializer)
            }
            output => {
                let outcome = json!({ "type": "exit", "exit_code": i32::from(self.0.is_error) });
                let command = json!({ "stdout": output.to_text(), "stderr": "", "outcome": outcome });
                [command].serialize(serializer)
            }
        }
    }
}
