//! The schema of the spec of each kind.

use super::{FieldSchema, FieldType, MapSchema};
use crate::kind::Kind;

pub(crate) static MODEL: MapSchema = MapSchema {
    about: "A model that agents call.",
    fields: &[
        FieldSchema {
            name: "provider",
            required: true,
            example: "provider: scripted",
            about: "The provider of the model, which defines the other fields.",
            field_type: FieldType::Provider,
        },
        FieldSchema {
            name: "record",
            required: false,
            example: "record: \"./requests.jsonl\"",
            about: "The file to which every request is appended as a line of JSON.",
            field_type: FieldType::Path,
        },
    ],
};

pub(crate) static EXTENSION: MapSchema = MapSchema {
    about: "Code that extends agents, with its settings.",
    fields: &[
        FieldSchema {
            name: "entry",
            required: true,
            example: "entry: \"linked:<name>\"",
            about: "The location of its code: `linked:<name>` for an extension that is linked into the program, or the path of a library.",
            field_type: FieldType::Entry,
        },
        FieldSchema {
            name: "sha256",
            required: false,
            example: "sha256: <digest>",
            about: "The digest that the file of the library must have.",
            field_type: FieldType::Digest,
        },
        FieldSchema {
            name: "config",
            required: false,
            example: "config: { … }",
            about: "Its settings. The extension defines their schema.",
            field_type: FieldType::Object,
        },
    ],
};

pub(crate) static AGENT: MapSchema = MapSchema {
    about: "An agent.",
    fields: &[
        FieldSchema {
            name: "model",
            required: true,
            example: "model: \"Model/<name>\"",
            about: "The model that it calls.",
            field_type: FieldType::Reference(Kind::Model),
        },
        FieldSchema {
            name: "models",
            required: false,
            example: "models: [ \"Model/<name>\" ]",
            about: "The models that a middleware can choose by name, besides its own. Defaults to all models of the bundle.",
            field_type: FieldType::References(Kind::Model),
        },
        FieldSchema {
            name: "system",
            required: false,
            example: "system: You are brief.",
            about: "The system prompt. It is sent with every request, and is never a message of the conversation.",
            field_type: FieldType::Text,
        },
        FieldSchema {
            name: "extensions",
            required: false,
            example: "extensions: [ { ref: \"Extension/<name>\" } ]",
            about: "Its extensions, in the order in which they are loaded. Each can be listed once.",
            field_type: FieldType::List { of: &USE, at_least: 0 },
        },
        FieldSchema {
            name: "policy",
            required: false,
            example: "policy: { maxStepsPerTurn: 32 }",
            about: "Its limits. They take precedence over those of the swarm.",
            field_type: FieldType::Map(&POLICY),
        },
        FieldSchema {
            name: "answer",
            required: false,
            example: "answer: { schema: { type: object } }",
            about: "The value that it answers with, in place of a text.",
            field_type: FieldType::Map(&ANSWER),
        },
    ],
};

pub(crate) static ANSWER: MapSchema = MapSchema {
    about: "The value that an agent answers with.",
    fields: &[
        FieldSchema {
            name: "schema",
            required: true,
            example: "schema: { type: object, properties: { … } }",
            about: "The JSON Schema of the value.",
            field_type: FieldType::Object,
        },
        FieldSchema {
            name: "atMost",
            required: false,
            example: "atMost: 2",
            about: "How often the model is asked again when its answer is no such value. Defaults to 2.",
            field_type: FieldType::Count,
        },
    ],
};

const USE_REF: FieldSchema = FieldSchema {
    name: "ref",
    required: true,
    example: "ref: \"Extension/<name>\"",
    about: "The extension.",
    field_type: FieldType::Reference(Kind::Extension),
};

const USE_CONFIG: FieldSchema = FieldSchema {
    name: "config",
    required: false,
    example: "config: { … }",
    about: "Settings for this use, which replace those of the extension key by key.",
    field_type: FieldType::Object,
};

const USE_ON_ERROR: FieldSchema = FieldSchema {
    name: "onError",
    required: false,
    example: "onError: abort",
    about: "What a failure of its middlewares means: `abort` fails what they wrap, `skip` goes on without them. Defaults \
            to `abort`.",
    field_type: FieldType::Choice(&["abort", "skip"]),
};

pub(crate) static USE: MapSchema = MapSchema {
    about: "The use of an extension by an agent.",
    fields: &[
        USE_REF,
        USE_CONFIG,
        USE_ON_ERROR,
        FieldSchema {
            name: "covers",
            required: false,
            example: "covers: reachable",
            about: "Whom an extension that guards covers: `agent`, or with `reachable` also every agent that this one asks, which must have it too. Defaults to `agent`.",
            field_type: FieldType::Choice(&["agent", "reachable"]),
        },
    ],
};

pub(crate) static SWARM_USE: MapSchema = MapSchema {
    about: "The use of an extension by all agents of a swarm.",
    fields: &[USE_REF, USE_CONFIG, USE_ON_ERROR],
};

pub(crate) static SWARM: MapSchema = MapSchema {
    about: "Agents that work together. A bundle has at most one swarm, and needs none if it has one agent.",
    fields: &[
        FieldSchema {
            name: "instanceKey",
            required: false,
            example: "instanceKey: desk",
            about: "The name of the workspace in which conversations are stored. Defaults to the name of the swarm.",
            field_type: FieldType::NonEmptyText,
        },
        FieldSchema {
            name: "agents",
            required: true,
            example: "agents: [ { ref: \"Agent/<name>\" } ]",
            about: "Its agents.",
            field_type: FieldType::List { of: &MEMBER, at_least: 1 },
        },
        FieldSchema {
            name: "entryAgent",
            required: true,
            example: "entryAgent: \"Agent/<name>\"",
            about: "The agent that receives input: one of its agents.",
            field_type: FieldType::Reference(Kind::Agent),
        },
        FieldSchema {
            name: "extensions",
            required: false,
            example: "extensions: [ { ref: \"Extension/<name>\" } ]",
            about: "The extensions that all its agents have, before their own. The layers of those that guard lie outside of all others.",
            field_type: FieldType::List { of: &SWARM_USE, at_least: 0 },
        },
        FieldSchema {
            name: "fsync",
            required: false,
            example: "fsync: turn",
            about: "When conversations are synced to the disk: `turn` at the end of each turn and before each tool call that may act on the world, `always` also before each request to the model and after its answer, `never` not at all.",
            field_type: FieldType::Choice(&["turn", "always", "never"]),
        },
        FieldSchema {
            name: "policy",
            required: false,
            example: "policy: { maxStepsPerTurn: 32 }",
            about: "The limits for its agents where they set none themselves.",
            field_type: FieldType::Map(&POLICY),
        },
    ],
};

pub(crate) static SERVER: MapSchema = MapSchema {
    about: "How `goondan serve` serves the agents. A bundle has at most one server, and needs none.",
    fields: &[
        FieldSchema {
            name: "listen",
            required: false,
            example: "listen: \"127.0.0.1:7717\"",
            about: "The address to listen on. Others than those of the machine itself need principals. Defaults to 127.0.0.1:7717.",
            field_type: FieldType::Address,
        },
        FieldSchema {
            name: "agents",
            required: false,
            example: "agents: [ \"Agent/<name>\" ]",
            about: "The agents that are served. Defaults to all agents of the bundle.",
            field_type: FieldType::References(Kind::Agent),
        },
        FieldSchema {
            name: "principals",
            required: false,
            example: "principals: [ { name: ada, tokenSha256: <digest> } ]",
            about: "Those who may use it. Without any, the machine itself may.",
            field_type: FieldType::List { of: &PRINCIPAL, at_least: 1 },
        },
        FieldSchema {
            name: "limits",
            required: false,
            example: "limits: { turns: 256 }",
            about: "How much is served at once.",
            field_type: FieldType::Map(&LIMITS),
        },
        FieldSchema {
            name: "ui",
            required: false,
            example: "ui: { onDisconnect: cancel }",
            about: "What pages of AI SDK UI mean.",
            field_type: FieldType::Map(&UI),
        },
    ],
};

pub(crate) static PRINCIPAL: MapSchema = MapSchema {
    about: "One who may use a server, by a token.",
    fields: &[
        FieldSchema {
            name: "name",
            required: true,
            example: "name: ada",
            about: "Its name: letters, digits, `-`, `_`, `.` and `@`.",
            field_type: FieldType::NonEmptyText,
        },
        FieldSchema {
            name: "tokenSha256",
            required: true,
            example: "tokenSha256: <digest>",
            about: "The SHA-256 of its token.",
            field_type: FieldType::Digest,
        },
        FieldSchema {
            name: "agents",
            required: false,
            example: "agents: [ \"Agent/<name>\" ]",
            about: "The agents that it may use. Defaults to all that are served.",
            field_type: FieldType::References(Kind::Agent),
        },
        FieldSchema {
            name: "instances",
            required: false,
            example: "instances: \"{principal}:*\"",
            about: "The keys of the conversations that it may use: `*` at the end stands for anything, and `{principal}` for its name. Defaults to `{principal}:*`.",
            field_type: FieldType::NonEmptyText,
        },
        FieldSchema {
            name: "may",
            required: false,
            example: "may: [ turn, read, decide ]",
            about: "Its rights: `turn` to run and cancel turns, `read` to see conversations, `decide` to answer questions, `delete` to delete conversations. Defaults to all.",
            field_type: FieldType::Choices(&RIGHTS),
        },
    ],
};

/// The rights of principals.
pub(crate) const RIGHTS: [&str; 4] = ["turn", "read", "decide", "delete"];

pub(crate) static LIMITS: MapSchema = MapSchema {
    about: "How much a server serves at once.",
    fields: &[
        FieldSchema {
            name: "turns",
            required: false,
            example: "turns: 256",
            about: "The most turns that run at the same time. Defaults to 256.",
            field_type: FieldType::Positive,
        },
        FieldSchema {
            name: "perPrincipal",
            required: false,
            example: "perPrincipal: 16",
            about: "The most turns of one principal that run or are queued. Defaults to 16.",
            field_type: FieldType::Positive,
        },
        FieldSchema {
            name: "bodyBytes",
            required: false,
            example: "bodyBytes: 8388608",
            about: "The most bytes of the body of a request. Defaults to 8388608.",
            field_type: FieldType::Positive,
        },
    ],
};

pub(crate) static UI: MapSchema = MapSchema {
    about: "What pages of AI SDK UI mean.",
    fields: &[FieldSchema {
        name: "onDisconnect",
        required: false,
        example: "onDisconnect: continue",
        about: "What it means for a turn that the page which asked for it goes away: `continue`, so that the page may come back, or `cancel`, as `stop()` of the page does. Defaults to `continue`.",
        field_type: FieldType::Choice(&["continue", "cancel"]),
    }],
};

pub(crate) static MEMBER: MapSchema = MapSchema {
    about: "An agent of a swarm.",
    fields: &[FieldSchema {
        name: "ref",
        required: true,
        example: "ref: \"Agent/<name>\"",
        about: "The agent.",
        field_type: FieldType::Reference(Kind::Agent),
    }],
};

pub(crate) static POLICY: MapSchema = MapSchema {
    about: "The limits of a turn.",
    fields: &[
        FieldSchema {
            name: "maxStepsPerTurn",
            required: false,
            example: "maxStepsPerTurn: 32",
            about: "The limit of steps in a turn. Defaults to 32.",
            field_type: FieldType::Positive,
        },
        FieldSchema {
            name: "maxRetries",
            required: false,
            example: "maxRetries: 3",
            about: "How often in a row a step or a tool call is run again because a middleware asks for it. Defaults to 3.",
            field_type: FieldType::Count,
        },
        FieldSchema {
            name: "maxResumptions",
            required: false,
            example: "maxResumptions: 5",
            about: "How often a turn is gone on with after an interruption without coming any further. Defaults to 5.",
            field_type: FieldType::Count,
        },
        FieldSchema {
            name: "turnTimeoutMs",
            required: false,
            example: "turnTimeoutMs: 1800000",
            about: "The timeout of a turn, in milliseconds. Defaults to 30 minutes.",
            field_type: FieldType::Positive,
        },
        FieldSchema {
            name: "modelTimeoutMs",
            required: false,
            example: "modelTimeoutMs: 600000",
            about: "The timeout of a call of the model, in milliseconds. Defaults to 10 minutes.",
            field_type: FieldType::Positive,
        },
        FieldSchema {
            name: "toolTimeoutMs",
            required: false,
            example: "toolTimeoutMs: 120000",
            about: "The timeout of a tool call, in milliseconds. Defaults to 2 minutes.",
            field_type: FieldType::Positive,
        },
        FieldSchema {
            name: "layerTimeoutMs",
            required: false,
            example: "layerTimeoutMs: 120000",
            about: "The timeout of a middleware under `onError: skip`, before `next` and again after it, in milliseconds. Defaults to 2 minutes.",
            field_type: FieldType::Positive,
        },
        FieldSchema {
            name: "maxResultBytes",
            required: false,
            example: "maxResultBytes: 524288",
            about: "How many bytes of text and JSON the result of a tool call may have. All of a larger one is in a file in the working directory, and the model reads an excerpt. The results of one answer together have eight times as much at most. Defaults to 524288.",
            field_type: FieldType::Positive,
        },
        FieldSchema {
            name: "maxOutputBytes",
            required: false,
            example: "maxOutputBytes: 1000000000",
            about: "How many bytes the files in the working directory that hold whole outputs may have together. What does not fit is cut, and the model reads that. Defaults to 1000000000.",
            field_type: FieldType::Positive,
        },
        FieldSchema {
            name: "maxParallelCalls",
            required: false,
            example: "maxParallelCalls: 16",
            about: "How many tool calls of an answer run at the same time, if all of them only read or may run beside others. Defaults to 16.",
            field_type: FieldType::Positive,
        },
    ],
};
