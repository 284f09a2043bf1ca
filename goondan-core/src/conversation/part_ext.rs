//! Members of a part for the runtime, which extensions do not see.

use super::part::{Part, ToolOutput};
use crate::depth::{self, TooDeep};

/// The members of a [`Part`] for the runtime.
pub trait PartExt {
    /// Returns whether a model that answered with this part has said something.
    fn is_answer(&self) -> bool;
    /// Checks that no value in the part has more than `levels` levels.
    ///
    /// # Errors
    /// The place of the first that is too deep.
    fn check_depth(&self, levels: usize) -> Result<(), TooDeep>;
    /// Drops the part without recursion.
    fn discard(self);
}

impl PartExt for Part {
    fn is_answer(&self) -> bool {
        match self {
            Self::Text(part) => part.text.contains(|c: char| !c.is_whitespace()),
            Self::ToolCall(_) | Self::Provider(_) | Self::File(_) => true,
            Self::Reasoning(_) | Self::ToolResult(_) | Self::Other(_) => false,
        }
    }

    fn check_depth(&self, levels: usize) -> Result<(), TooDeep> {
        match self {
            Self::Text(part) => part.extra.check_depth(levels),
            Self::Reasoning(part) => part.extra().check_depth(levels),
            Self::File(part) => part.extra.check_depth(levels),
            Self::ToolCall(call) => {
                depth::check_within(&call.input, levels).map_err(|error| error.within("/input"))?;
                call.extra.check_depth(levels)
            }
            Self::ToolResult(result) => {
                let value = |error: TooDeep| error.within("/output/value");
                match &result.output {
                    ToolOutput::Text(_) => {}
                    ToolOutput::Json(json) => depth::check_within(json, levels).map_err(value)?,
                    ToolOutput::Content(parts) => {
                        parts.iter().try_for_each(|part| part.check_depth(levels)).map_err(value)?
                    }
                    ToolOutput::Other(output) => {
                        depth::check_within(output, levels).map_err(|error| error.within("/output"))?;
                    }
                }
                result.output_unknown.check_depth(levels).map_err(|error| error.within("/output"))?;
                result.unknown.check_depth(levels)
            }
            Self::Provider(part) => {
                part.provider().check_depth(levels)?;
                part.unknown().check_depth(levels)
            }
            Self::Other(members) => depth::check_map_within(members, levels),
        }
    }

    fn discard(self) {
        match self {
            Self::Text(part) => part.extra.discard(),
            Self::Reasoning(part) => part.discard(),
            Self::File(part) => part.extra.discard(),
            Self::ToolCall(call) => {
                depth::discard([call.input]);
                call.extra.discard();
            }
            Self::ToolResult(result) => {
                match result.output {
                    ToolOutput::Text(_) => {}
                    ToolOutput::Json(value) | ToolOutput::Other(value) => depth::discard([value]),
                    ToolOutput::Content(parts) => parts.into_iter().for_each(Self::discard),
                }
                result.output_unknown.discard();
                result.unknown.discard();
            }
            Self::Provider(part) => part.discard(),
            Self::Other(members) => depth::discard(members.into_values()),
        }
    }
}
