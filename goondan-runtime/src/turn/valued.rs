//! The check of the final answer of a turn that is to be a value.
// VALUE-01

use goondan_core::host::text_of;
use goondan_core::{Error, ErrorCode, ModelFinish, Part, Result, TextPart};

use super::answer::cut_off_in;
use crate::awaited::AwaitedValue;
use crate::ports::store::AskedAgain;

impl AwaitedValue {
    /// Makes the text of an answer the value that it is.
    ///
    /// # Errors
    /// The form in which the model is asked again, or the reason why it is not.
    pub(super) fn check(&self, content: &mut Vec<Part>, finish: Option<ModelFinish>) -> Result<Option<AskedAgain>> {
        let texts = content.iter().filter_map(|part| match part {
            Part::Text(text) => Some(text.text.as_str()),
            _ => None,
        });
        let text = texts.collect::<String>();
        let problem = match self.read(&text) {
            Ok(value) => {
                content.retain(|part| !matches!(part, Part::Text(_)));
                content.push(TextPart::new(value).into());
                return Ok(None);
            }
            Err(problem) => problem,
        };
        match finish {
            Some(ModelFinish::Length) => Err(cut_off_in("in the middle of the value")),
            Some(ModelFinish::Refusal | ModelFinish::ContentFilter) => {
                let message = format!("the model refused to answer: {}", text_of(content));
                Err(Error::new(ErrorCode::MODEL_REFUSED, message).suggest("change the request, or use another model"))
            }
            _ => Ok(Some(AskedAgain::no_value(problem, self.at_most(), text_of(content).into_owned()))),
        }
    }
}

/// Returns the error for a turn whose answer is no value, although the model was asked again.
#[cold]
pub(super) fn no_value(problem: &str, attempt: &str) -> Error {
    Error::new(
        ErrorCode::ANSWER_SCHEMA,
        format!("the model gave no value that fits the schema of the answer: {problem}"),
    )
    .with_detail("attempt", attempt)
    .suggest("say in the prompt what the members mean, simplify the schema, or use another model")
}
