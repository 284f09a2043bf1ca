//! Owns the shape of the spec of each kind.

use super::{FieldShape, Shape, Takes};
use crate::document::Kind;

pub(crate) static MODEL: Shape = Shape {
    about: "A model that agents ask.",
    fields: &[
        FieldShape {
            name: "provider",
            required: true,
            example: "provider: scripted",
            about: "Who answers. `scripted` plays a list of answers: no key, no network.",
            takes: Takes::Word(&["scripted"]),
        },
        FieldShape {
            name: "script",
            required: true,
            example: "script: \"./script.yaml\"",
            about: "The YAML file with the answers of the scripted model.",
            takes: Takes::Path,
        },
        FieldShape {
            name: "record",
            required: false,
            example: "record: \"./requests.jsonl\"",
            about: "The file to which every request is added as a line of JSON.",
            takes: Takes::Path,
        },
    ],
};

pub(crate) static EXTENSION: Shape = Shape {
    about: "Code that wraps agents, with its settings.",
    fields: &[
        FieldShape {
            name: "entry",
            required: true,
            example: "entry: \"linked:<name>\"",
            about: "Where its code is: `linked:<name>` is in the program itself, under this name; a path leads to a library.",
            takes: Takes::Entry,
        },
        FieldShape {
            name: "sha256",
            required: false,
            example: "sha256: <digest>",
            about: "The digest that the file of the library must have.",
            takes: Takes::Digest,
        },
        FieldShape {
            name: "config",
            required: false,
            example: "config: { … }",
            about: "Its settings. What they are is for the extension to say.",
            takes: Takes::Object,
        },
    ],
};

pub(crate) static AGENT: Shape = Shape {
    about: "An agent.",
    fields: &[
        FieldShape {
            name: "model",
            required: true,
            example: "model: \"Model/<name>\"",
            about: "The model that it asks.",
            takes: Takes::Reference(Kind::Model),
        },
        FieldShape {
            name: "system",
            required: false,
            example: "system: You are brief.",
            about: "The system prompt. It is sent with every request, and never a message of the conversation.",
            takes: Takes::Text,
        },
        FieldShape {
            name: "extensions",
            required: false,
            example: "extensions: [ { ref: \"Extension/<name>\" } ]",
            about: "What wraps it, in the order in which it is loaded. An extension can be listed once.",
            takes: Takes::List { of: &USE, at_least: 0 },
        },
        FieldShape {
            name: "policy",
            required: false,
            example: "policy: { maxStepsPerTurn: 32 }",
            about: "Limits of its own. They go before those of the swarm.",
            takes: Takes::Table(&POLICY),
        },
    ],
};

pub(crate) static USE: Shape = Shape {
    about: "The use of an extension by an agent.",
    fields: &[
        FieldShape {
            name: "ref",
            required: true,
            example: "ref: \"Extension/<name>\"",
            about: "The extension.",
            takes: Takes::Reference(Kind::Extension),
        },
        FieldShape {
            name: "config",
            required: false,
            example: "config: { … }",
            about: "Settings for this agent, which replace those of the extension key by key.",
            takes: Takes::Object,
        },
        FieldShape {
            name: "onError",
            required: false,
            example: "onError: abort",
            about: "What happens when the extension fails: `abort` ends the turn.",
            takes: Takes::Word(&["abort"]),
        },
    ],
};

pub(crate) static SWARM: Shape = Shape {
    about: "Agents that work together. A bundle has one at most, and needs none if it has one agent.",
    fields: &[
        FieldShape {
            name: "instanceKey",
            required: false,
            example: "instanceKey: desk",
            about: "The name of the workspace in which conversations are kept, if that is not the name of the swarm.",
            takes: Takes::FilledText,
        },
        FieldShape {
            name: "agents",
            required: true,
            example: "agents: [ { ref: \"Agent/<name>\" } ]",
            about: "Its agents.",
            takes: Takes::List { of: &MEMBER, at_least: 1 },
        },
        FieldShape {
            name: "entryAgent",
            required: true,
            example: "entryAgent: \"Agent/<name>\"",
            about: "The one of its agents that input goes to.",
            takes: Takes::Reference(Kind::Agent),
        },
        FieldShape {
            name: "fsync",
            required: false,
            example: "fsync: turn",
            about: "When conversations are synced to the disk: `turn` at the end of each turn and before each tool call that may act on the world, `always` whenever something was said, `never` not at all.",
            takes: Takes::Word(&["turn", "always", "never"]),
        },
        FieldShape {
            name: "policy",
            required: false,
            example: "policy: { maxStepsPerTurn: 32 }",
            about: "Limits for its agents that have none of their own.",
            takes: Takes::Table(&POLICY),
        },
    ],
};

pub(crate) static MEMBER: Shape = Shape {
    about: "An agent of a swarm.",
    fields: &[FieldShape {
        name: "ref",
        required: true,
        example: "ref: \"Agent/<name>\"",
        about: "The agent.",
        takes: Takes::Reference(Kind::Agent),
    }],
};

pub(crate) static POLICY: Shape = Shape {
    about: "The limits of a turn.",
    fields: &[
        FieldShape {
            name: "maxStepsPerTurn",
            required: false,
            example: "maxStepsPerTurn: 32",
            about: "How many steps a turn may take.",
            takes: Takes::Positive,
        },
        FieldShape {
            name: "toolTimeoutMs",
            required: false,
            example: "toolTimeoutMs: 120000",
            about: "How long one tool call may take, in milliseconds.",
            takes: Takes::Positive,
        },
    ],
};
