//! Owns the shape that documents of all kinds share, and that of references.

use super::{FieldShape, Shape, Takes};

/// The version of the format.
pub(crate) const API_VERSION: &str = "goondan.ai/v1";

pub(crate) static DOCUMENT: Shape = Shape {
    about: "A document of a bundle.",
    fields: &[
        FieldShape {
            name: "apiVersion",
            required: true,
            example: "apiVersion: goondan.ai/v1",
            about: "The version of the format.",
            takes: Takes::Word(&[API_VERSION]),
        },
        FieldShape {
            name: "kind",
            required: true,
            example: "kind: Agent",
            about: "What the document declares. Documents without it are ignored.",
            takes: Takes::Kind,
        },
        FieldShape {
            name: "metadata",
            required: true,
            example: "metadata: { name: <name> }",
            about: "What the resource is called.",
            takes: Takes::Table(&METADATA),
        },
        FieldShape {
            name: "spec",
            required: true,
            example: "spec: { … }",
            about: "What the resource is; its fields depend on the kind.",
            takes: Takes::Spec,
        },
    ],
};

pub(crate) static METADATA: Shape = Shape {
    about: "What the resource is called.",
    fields: &[
        FieldShape {
            name: "name",
            required: true,
            example: "name: <name>",
            about: "The name, by which others refer to the resource: one of its kind in the bundle.",
            takes: Takes::Name,
        },
        FieldShape {
            name: "labels",
            required: false,
            example: "labels: { team: core }",
            about: "Notes for those who read the bundle; goondan does nothing with them.",
            takes: Takes::Labels,
        },
    ],
};

pub(crate) static VALUE: Shape = Shape {
    about: "A value that comes from elsewhere.",
    fields: &[FieldShape {
        name: "valueFrom",
        required: true,
        example: "valueFrom: { env: <NAME> }",
        about: "Where the value comes from.",
        takes: Takes::Table(&VALUE_FROM),
    }],
};

pub(crate) static VALUE_FROM: Shape = Shape {
    about: "Where a value comes from.",
    fields: &[FieldShape {
        name: "env",
        required: true,
        example: "env: <NAME>",
        about: "The variable of the environment that holds the value. It is read when the agents are built.",
        takes: Takes::Variable,
    }],
};

pub(crate) static REFERENCE: Shape = Shape {
    about: "A reference that is written out.",
    fields: &[
        FieldShape {
            name: "kind",
            required: true,
            example: "kind: <Kind>",
            about: "The kind of the resource.",
            takes: Takes::Text,
        },
        FieldShape {
            name: "name",
            required: true,
            example: "name: <name>",
            about: "The name of the resource.",
            takes: Takes::Text,
        },
    ],
};
