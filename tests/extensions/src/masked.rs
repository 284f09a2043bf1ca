//! Extensions that mask inputs.

use goondan::middleware::InputMasker;
use goondan::prelude::*;

/// Masks a word in inputs.
pub struct Masking;

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Config {
    word: String,
    by: String,
    /// It refuses an input with this text.
    refuse: Option<String>,
    /// It panics at an input with this text.
    panic: Option<String>,
}

impl InputMasker for Config {
    fn mask(&self, text: &str) -> Result<Option<String>> {
        let has = |word: &Option<String>| word.as_ref().is_some_and(|word| text.contains(word));
        if has(&self.refuse) {
            return Err(Error::new("E_NOT_THIS", "not this").suggest("say something else"));
        }
        assert!(!has(&self.panic), "it panicked");
        Ok(text.contains(&self.word).then(|| text.replace(&self.word, &self.by)))
    }
}

#[goondan::extension(name = "masking")]
impl Masking {
    #[init]
    fn new(api: ExtensionApi, config: Config) -> Result<Self> {
        api.pipeline().mask_inputs(config)?;
        Ok(Self)
    }
}
