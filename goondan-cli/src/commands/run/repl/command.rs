//! Owns what can be typed: messages, and the commands that begin with a slash.

use goondan::bundle::nearest;

/// What the user wants.
#[derive(Debug, PartialEq)]
pub(crate) enum Wish {
    Nothing,
    Say(String),
    Help,
    Tools,
    History,
    State,
    Order,
    Reload,
    Quit,
    /// A command that there is not, and the one that is most like it.
    Unknown(String, Option<&'static str>),
}

/// The commands, and what they do.
pub(crate) const COMMANDS: [(&str, &str); 8] = [
    ("/help", "this list"),
    ("/tools", "what the agent can do"),
    ("/history", "what was said, in short"),
    ("/state", "what the extensions remember"),
    ("/order", "which extension wraps which, and why"),
    ("/reload", "read the bundle again and go on with this conversation"),
    ("/quit", "leave; the next run goes on from here"),
    ("/exit", "the same"),
];

/// What is said below the list of commands.
const KEYS: &str = "\
Everything else is said to the agent; `//` begins a message with a slash.
A line that ends in a backslash goes on in the next one; several lines that are pasted at once are one message.
Ctrl-C cancels a running turn or clears the line, twice leaves. Ctrl-D leaves. ↑ and Ctrl-R find what you typed earlier.
";

/// What `input` asks for.
pub(crate) fn parse(input: &str) -> Wish {
    let command = input.trim();
    match command {
        "" => Wish::Nothing,
        _ if command.starts_with("//") => Wish::Say(command[1..].to_owned()),
        _ if !command.starts_with('/') => Wish::Say(input.to_owned()),
        "/help" => Wish::Help,
        "/tools" => Wish::Tools,
        "/history" => Wish::History,
        "/state" => Wish::State,
        "/order" => Wish::Order,
        "/reload" => Wish::Reload,
        "/quit" | "/exit" => Wish::Quit,
        unknown => {
            let word = unknown.split_whitespace().next().unwrap_or(unknown);
            Wish::Unknown(word.to_owned(), nearest(word, COMMANDS.map(|(name, _)| name)))
        }
    }
}

pub(crate) fn help() -> String {
    let mut help: String = COMMANDS.iter().map(|(name, does)| format!("{name:<9} {does}\n")).collect();
    help.push_str(KEYS);
    help
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_understood() {
        for (name, _) in COMMANDS {
            let wish = parse(name);
            assert!(!matches!(wish, Wish::Nothing | Wish::Say(_) | Wish::Unknown(..)), "{name}: {wish:?}");
        }
        assert_eq!(parse("  /quit "), Wish::Quit);
    }

    #[test]
    fn what_is_no_command_is_said_or_named() {
        assert_eq!(parse(" \n"), Wish::Nothing);
        assert_eq!(parse("what is /etc?"), Wish::Say("what is /etc?".to_owned()));
        assert_eq!(parse("//etc is a path"), Wish::Say("/etc is a path".to_owned()));
        assert_eq!(parse("/tolls now"), Wish::Unknown("/tolls".to_owned(), Some("/tools")));
        assert_eq!(parse("/var/log"), Wish::Unknown("/var/log".to_owned(), None));
    }
}
