//! The declaration of a result's fields, from which both sides of a crossing are generated.

/// Declares the fields of a result, each with its type and its name in JSON, and implements
/// [`Crossing`](crate::crossing::Crossing) for the result. Members under `local` never leave this binary.
macro_rules! result_fields {
    (
        $(#[$about:meta])*
        pub struct $data:ident for $result:ident { $($field:ident: $type:ty = $name:literal,)* }
        local { $($(#[doc = $doc:literal])* $(#[cfg($condition:meta)])? $local:ident: $local_type:ty,)* }
    ) => {
        $(#[$about])*
        #[derive(Clone, Debug)]
        pub struct $data {
            $($field: $crate::crossing::Lazy<$type>,)*
            $($(#[doc = $doc])* $(#[cfg($condition)])? $local: $local_type,)*
        }

        impl Default for $data {
            fn default() -> Self {
                Self {
                    $($field: $crate::crossing::Lazy::unread($name),)*
                    $($(#[cfg($condition)])? $local: Default::default(),)*
                }
            }
        }

        impl $crate::crossing::Crossing for $result {
            type Data = $data;

            fn remote(origin: $crate::crossing::RemoteResult) -> Self {
                Self { data: $crate::crossing::MaybeRemote::remote(origin) }
            }

            fn into_returned(self) -> $crate::error::Result<$crate::crossing::Returned> {
                let $crate::crossing::MaybeRemote::Remote(remote) = self.data else {
                    return Ok($crate::crossing::Returned::Local(self.fields()?));
                };
                if let Some(data) = remote.data.get() {
                    $(data.$field.flush(&remote.origin)?;)*
                }
                Ok(remote.origin.into_returned())
            }

            fn fields(&self) -> $crate::error::Result<serde_json::Map<String, serde_json::Value>> {
                let mut fields = serde_json::Map::new();
                $(
                    let value = serde_json::to_value(self.data.field(|data| &data.$field));
                    fields.insert($name.to_owned(), value.map_err($crate::crossing::unwritable)?);
                )*
                Ok(fields)
            }

            fn from_fields(mut fields: serde_json::Map<String, serde_json::Value>) -> $crate::error::Result<Self> {
                let data = $crate::crossing::MaybeRemote::local($data {
                    $($field: {
                        // A library of an older minor version does not write fields that came later: they are optional.
                        let value = fields.remove($name).unwrap_or_default();
                        $crate::crossing::Lazy::parse(value).map_err(|error| {
                            $crate::error::Error::msg(concat!("a result without its field `", $name, "`"))
                                .caused_by(error)
                        })?
                    },)*
                    $($(#[cfg($condition)])? $local: Default::default(),)*
                });
                Ok(Self { data })
            }

            fn into_data(self) -> Box<$data> {
                self.data.into_box()
            }

            fn from_data(data: Box<$data>) -> Self {
                Self { data: $crate::crossing::MaybeRemote::Local(data) }
            }

            fn share(self) -> (Self, Self) {
                let (one, other) = self.data.share();
                (Self { data: one }, Self { data: other })
            }

            fn read(data: &$data, name: &str) -> $crate::error::Result<Vec<u8>> {
                match name {
                    $($name => serde_json::to_vec(data.$field.get(None)).map_err($crate::crossing::unwritable),)*
                    _ => Err($crate::crossing::unknown(name)),
                }
            }

            fn write(data: &mut $data, name: &str, json: &[u8]) -> $crate::error::Result<()> {
                match name {
                    $($name => data.$field.parse_into(json),)*
                    _ => Err($crate::crossing::unknown(name)),
                }
            }
        }
    };
}

pub(crate) use result_fields;
