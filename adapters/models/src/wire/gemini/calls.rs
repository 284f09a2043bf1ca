//! Calls of an answer. Most arrive whole; the arguments of some arrive in pieces, and then the call ends with an event
//! of its own, or with the next part.

use serde_json::{Map, Value};

use super::{CALL, OWN_ID, arguments, drop_empty, take_text};
use crate::answer::{Answer, Key};
use crate::http::{Failure, FailureKind};

/// The member of a call with pieces of its arguments. Until they end, the arguments are in a member of this name in the
/// rest.
const PIECES: &str = "partialArgs";

/// The member of a call that says whether more of it follows.
const MORE: &str = "willContinue";

/// Reads a part that is a call, or the rest of the call in the part `newest`. Returns `false` if it is neither.
pub(super) fn read(
    rest: &mut Map<String, Value>,
    newest: Key,
    key: Key,
    answer: &mut Answer<'_>,
) -> Result<bool, Failure> {
    let Some(Value::Object(call)) = rest.get_mut(CALL) else { return Ok(false) };
    let more = has_more(call);
    let pieces = call.shift_remove(PIECES);
    let at = if call.get("name").is_some_and(Value::is_string) {
        end(newest, answer);
        if pieces.is_some() {
            call.insert(MORE.to_owned(), true.into());
        }
        open(std::mem::take(rest), key, answer);
        key
    } else if open_call(newest, answer).is_some() {
        rest.shift_remove(CALL);
        answer.rest(newest).into_iter().for_each(|known| known.append(rest));
        newest
    } else {
        return Ok(false);
    };
    if let (Some(Value::Array(pieces)), Some(call)) = (pieces, open_call(at, answer)) {
        let known = call.entry(PIECES).or_insert(Value::Null);
        let nowhere = || Failure::new(FailureKind::Answer, "the provider sent an argument that belongs nowhere");
        pieces.iter().try_for_each(|piece| arguments::add(known, piece)).ok_or_else(nowhere)?;
    }
    if !more {
        end(at, answer);
    }
    Ok(true)
}

/// Opens a call.
fn open(mut rest: Map<String, Value>, key: Key, answer: &mut Answer<'_>) {
    let Some(Value::Object(call)) = rest.get_mut(CALL) else { return };
    let (id, name) = (take_text(call, "id"), take_text(call, "name"));
    let arguments = call.shift_remove("args");
    drop_empty(&mut rest, CALL);
    if id.is_empty() {
        rest.insert(OWN_ID.to_owned(), Value::Null);
    }
    answer.open_call(key, &id, name, rest);
    match arguments {
        None | Some(Value::Null) => {}
        Some(Value::Object(members)) if members.is_empty() => {}
        Some(arguments) => answer.grow(key, &arguments.to_string()),
    }
}

/// Ends the call in the part `key`, if more of it was expected.
pub(super) fn end(key: Key, answer: &mut Answer<'_>) {
    if let Some(Some(arguments)) = take_arguments(key, answer) {
        answer.grow(key, &arguments.to_string());
    }
}

/// Ends the call in the part `key`, if more of it was expected but does not come. Its arguments are then not valid
/// JSON, because half a call must not run.
pub(super) fn cut_off(key: Key, answer: &mut Answer<'_>) {
    if let Some(arguments) = take_arguments(key, answer) {
        let mut json = arguments.unwrap_or_else(|| Value::Object(Map::new())).to_string();
        json.pop();
        answer.grow(key, &json);
    }
}

/// Removes the arguments, and the mark that more is expected, from the rest. Returns `None` if there is no mark.
fn take_arguments(key: Key, answer: &mut Answer<'_>) -> Option<Option<Value>> {
    let call = open_call(key, answer)?;
    call.shift_remove(MORE);
    let arguments = call.shift_remove(PIECES);
    drop_empty(answer.rest(key)?, CALL);
    Some(arguments)
}

/// Returns the members of the call in the part `key`, if more of it is expected.
fn open_call<'a>(key: Key, answer: &'a mut Answer<'_>) -> Option<&'a mut Map<String, Value>> {
    answer.rest(key)?.get_mut(CALL)?.as_object_mut().filter(|call| has_more(call))
}

fn has_more(call: &Map<String, Value>) -> bool {
    call.get(MORE) == Some(&Value::Bool(true))
}
