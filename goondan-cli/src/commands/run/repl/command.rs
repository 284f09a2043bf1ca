//! The input of the REPL: messages, and commands that begin with a slash.

use goondan::bundle::nearest;

/// A parsed input.
#[derive(Debug, PartialEq)]
pub(crate) enum Command {
    /// A blank line.
    Nothing,
    /// A message to the agent.
    Say(String),
    /// A file that goes with the next message.
    File(String),
    Help,
    Tools,
    History,
    Last,
    Cost,
    State,
    Order,
    Reload,
    Accept,
    Continue,
    Decide,
    /// The rules for tool calls; with a number, the approval of this number is taken back.
    Rules(Option<usize>),
    Undo,
    Quit,
    /// A command that does not exist, and the nearest one that does.
    Unknown(String, Option<&'static str>),
}

/// The commands with their descriptions.
pub(crate) const COMMANDS: [(&str, &str); 16] = [
    ("/help", "show this list"),
    ("/file", "PATH: send a file with the next message"),
    ("/tools", "list the tools of the agent"),
    ("/history", "list the messages, shortened"),
    ("/last", "show the whole output of the last tool call"),
    ("/cost", "show what the turns of this conversation used together"),
    ("/state", "show the state of the extensions"),
    ("/order", "show which extension wraps which, and why"),
    ("/reload", "read the bundle again and continue this conversation"),
    ("/accept", "take what the changed bundle adds, such as a command"),
    ("/continue", "go on with a turn that was interrupted"),
    ("/decide", "ask about the tool calls that wait for a decision"),
    ("/rules", "show the rules of approval; /rules forget NUMBER takes back an `always`"),
    ("/undo", "take the last turn back; what it did to files stays"),
    ("/quit", "leave; the next run continues the conversation"),
    ("/exit", "the same as /quit"),
];

/// The end of the help page.
const KEYS: &str = "\
All other input is a message to the agent; `//` begins a message with a slash.
A line that ends in a backslash continues on the next line; several lines that are pasted together are one message.
While a turn runs, Enter lets an input join it at its next step, Tab keeps one for afterwards, and Esc cancels the turn.
Ctrl-C cancels a running turn or clears the line; twice, it leaves. Ctrl-D leaves. ↑ and Ctrl-R find earlier input.
";

pub(crate) fn parse(input: &str) -> Command {
    let command = input.trim();
    match command {
        "" => Command::Nothing,
        _ if command.starts_with("//") => Command::Say(command[1..].to_owned()),
        _ if !command.starts_with('/') => Command::Say(input.to_owned()),
        "/help" => Command::Help,
        "/tools" => Command::Tools,
        "/history" => Command::History,
        "/last" => Command::Last,
        "/cost" => Command::Cost,
        "/state" => Command::State,
        "/order" => Command::Order,
        "/reload" => Command::Reload,
        "/accept" => Command::Accept,
        "/continue" => Command::Continue,
        "/decide" => Command::Decide,
        "/rules" => Command::Rules(None),
        "/undo" => Command::Undo,
        "/quit" | "/exit" => Command::Quit,
        _ if command.split_whitespace().next() == Some("/file") => {
            Command::File(command["/file".len()..].trim().into())
        }
        unknown => {
            if let ["/rules", "forget", number] = unknown.split_whitespace().collect::<Vec<_>>()[..]
                && let Ok(number) = number.parse()
            {
                return Command::Rules(Some(number));
            }
            let word = unknown.split_whitespace().next().unwrap_or(unknown);
            Command::Unknown(word.to_owned(), nearest(word, COMMANDS.map(|(name, _)| name)))
        }
    }
}

/// Returns the page of `/help`.
pub(crate) fn help() -> String {
    let mut help: String = COMMANDS.iter().map(|(name, description)| format!("{name:<10} {description}\n")).collect();
    help.push_str(KEYS);
    help
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_understood() {
        for (name, _) in COMMANDS {
            let command = parse(name);
            let other = matches!(command, Command::Nothing | Command::Say(_) | Command::Unknown(..));
            assert!(!other, "{name}: {command:?}");
        }
        assert_eq!(parse("  /quit "), Command::Quit);
        assert_eq!(parse("/file a picture.png "), Command::File("a picture.png".to_owned()));
        assert_eq!(parse("/rules  forget 2"), Command::Rules(Some(2)));
    }

    #[test]
    fn other_input_is_a_message_or_an_unknown_command() {
        assert_eq!(parse(" \n"), Command::Nothing);
        assert_eq!(parse("what is /etc?"), Command::Say("what is /etc?".to_owned()));
        assert_eq!(parse("//etc is a path"), Command::Say("/etc is a path".to_owned()));
        assert_eq!(parse("/tolls now"), Command::Unknown("/tolls".to_owned(), Some("/tools")));
        assert_eq!(parse("/var/log"), Command::Unknown("/var/log".to_owned(), None));
    }
}
