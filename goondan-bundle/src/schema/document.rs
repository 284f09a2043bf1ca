//! The schemas of the common part of all documents, of references, and of values from the environment.

use super::{FieldSchema, FieldType, MapSchema};

/// The version of the format.
pub(crate) const API_VERSION: &str = "goondan.ai/v1";

pub(crate) static DOCUMENT: MapSchema = MapSchema {
    about: "A document of a bundle.",
    fields: &[
        FieldSchema {
            name: "apiVersion",
            required: true,
            example: "apiVersion: goondan.ai/v1",
            about: "The version of the format.",
            field_type: FieldType::Choice(&[API_VERSION]),
        },
        FieldSchema {
            name: "kind",
            required: true,
            example: "kind: Agent",
            about: "The kind of resource that the document declares. Documents without it are ignored.",
            field_type: FieldType::Kind,
        },
        FieldSchema {
            name: "metadata",
            required: true,
            example: "metadata: { name: <name> }",
            about: "The name and the labels of the resource.",
            field_type: FieldType::Map(&METADATA),
        },
        FieldSchema {
            name: "spec",
            required: true,
            example: "spec: { … }",
            about: "The settings of the resource; its fields depend on the kind.",
            field_type: FieldType::Spec,
        },
    ],
};

pub(crate) static METADATA: MapSchema = MapSchema {
    about: "The name and the labels of the resource.",
    fields: &[
        FieldSchema {
            name: "name",
            required: true,
            example: "name: <name>",
            about: "The name by which other documents refer to the resource, unique among the resources of its kind.",
            field_type: FieldType::Name,
        },
        FieldSchema {
            name: "labels",
            required: false,
            example: "labels: { team: core }",
            about: "Notes for readers of the bundle; goondan ignores them.",
            field_type: FieldType::Labels,
        },
    ],
};

pub(crate) static VALUE: MapSchema = MapSchema {
    about: "A value that is not written in the bundle.",
    fields: &[FieldSchema {
        name: "valueFrom",
        required: true,
        example: "valueFrom: { env: <NAME> }",
        about: "The source of the value.",
        field_type: FieldType::Map(&VALUE_FROM),
    }],
};

pub(crate) static VALUE_FROM: MapSchema = MapSchema {
    about: "The source of a value.",
    fields: &[
        FieldSchema {
            name: "env",
            required: true,
            example: "env: <NAME>",
            about: "The environment variable with the value. It is read when the agents are built.",
            field_type: FieldType::Variable,
        },
        FieldSchema {
            name: "secret",
            required: false,
            example: "secret: false",
            about: "Whether the value is masked in logs, errors and records. Defaults to `true`.",
            field_type: FieldType::Flag,
        },
    ],
};

pub(crate) static REFERENCE: MapSchema = MapSchema {
    about: "A reference as a mapping.",
    fields: &[
        FieldSchema {
            name: "kind",
            required: true,
            example: "kind: <Kind>",
            about: "The kind of the resource.",
            field_type: FieldType::Text,
        },
        FieldSchema {
            name: "name",
            required: true,
            example: "name: <name>",
            about: "The name of the resource.",
            field_type: FieldType::Text,
        },
    ],
};
