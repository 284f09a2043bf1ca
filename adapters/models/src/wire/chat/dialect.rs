//! Per-provider differences of chat completions.

/// A provider of chat completions. To add one, add a line to the table, with its differences from
/// [`OPENAI_COMPATIBLE`](Self::OPENAI_COMPATIBLE).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dialect {
    /// The name in bundles and messages.
    pub name: &'static str,
    /// The address of the interface, unless the config must have one.
    pub base_url: Option<&'static str>,
    /// Whether requests without a key are refused.
    pub needs_key: bool,
    /// The member that limits the tokens of an answer.
    pub(super) max_tokens: &'static str,
    /// The member that makes answers repeatable, if there is one.
    pub(super) seed: Option<&'static str>,
    /// The form of the request for reasoning.
    pub(super) reasoning: Reasoning,
    /// The words for no effort, and for minimal, low, medium, high and maximal effort. `None` if there is no such word.
    pub(super) efforts: [Option<&'static str>; 6],
    /// When reasoning that is a text goes back. Signed `reasoning_details` always do.
    pub(super) replay: Replay,
    /// Which choices of tools are understood.
    pub(super) tool_choice: ToolChoices,
    /// Whether several calls in one answer can be forbidden.
    pub(super) parallel_tool_calls: bool,
    /// Whether an answer can be held to a JSON Schema.
    pub(super) schemas: bool,
    /// Whether counts of tokens must be, and can be, asked for. Others are sent, or refused, unasked.
    pub(super) include_usage: bool,
    /// Whether the member `cost` of the counts of tokens is in US dollars.
    pub(super) cost: bool,
    /// Whether the cache of models of Anthropic has to be asked for.
    pub(super) cache_control: bool,
    /// Whether the ids of calls must have nine letters and digits.
    pub(super) short_ids: bool,
    /// Whether a message with calls alone needs an empty text.
    pub(super) needs_content: bool,
    /// Whether the results of tools must be followed by an answer.
    pub(super) answers_follow_tools: bool,
    /// Whether members of an answer that this crate does not know may go back.
    pub(super) unknown_members: bool,
}

/// The form of a request for reasoning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reasoning {
    /// `"reasoning_effort": "low"`
    Effort,
    /// `"reasoning": {"effort": "low"}`, with a limit of tokens and summaries too.
    Object,
    /// `"thinking": {"type": "enabled"}` beside `reasoning_effort`.
    Switch,
}

/// When reasoning that is a text goes back to the model that it came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Replay {
    /// Within the running turn.
    Turn,
    /// Always.
    Always,
    /// Always, and calls without reasoning need an empty one.
    Required,
    /// Never.
    Never,
}

/// Which choices of tools a provider understands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ToolChoices {
    /// All.
    All,
    /// Not the choice of one tool.
    Words,
    /// None: they are ignored.
    Ignored,
}

impl Dialect {
    /// Any server that speaks chat completions as most do.
    pub const OPENAI_COMPATIBLE: Self = Self {
        name: "openai-compatible",
        base_url: None,
        needs_key: false,
        max_tokens: "max_tokens",
        seed: Some("seed"),
        reasoning: Reasoning::Effort,
        efforts: [Some("none"), Some("minimal"), Some("low"), Some("medium"), Some("high"), Some("xhigh")],
        replay: Replay::Turn,
        tool_choice: ToolChoices::All,
        parallel_tool_calls: true,
        schemas: true,
        include_usage: true,
        cost: false,
        cache_control: false,
        short_ids: false,
        needs_content: false,
        answers_follow_tools: false,
        unknown_members: true,
    };

    /// [OpenRouter](https://openrouter.ai/docs).
    pub const OPENROUTER: Self = Self {
        name: "openrouter",
        base_url: Some("https://openrouter.ai/api/v1"),
        needs_key: true,
        reasoning: Reasoning::Object,
        cost: true,
        cache_control: true,
        ..Self::OPENAI_COMPATIBLE
    };

    /// [Ollama](https://docs.ollama.com/api/openai-compatibility).
    pub const OLLAMA: Self = Self {
        name: "ollama",
        base_url: Some("http://localhost:11434/v1"),
        efforts: THREE_LEVELS,
        tool_choice: ToolChoices::Ignored,
        parallel_tool_calls: false,
        ..Self::OPENAI_COMPATIBLE
    };

    /// [DeepSeek](https://api-docs.deepseek.com).
    pub const DEEPSEEK: Self = Self {
        name: "deepseek",
        base_url: Some("https://api.deepseek.com"),
        needs_key: true,
        seed: None,
        reasoning: Reasoning::Switch,
        efforts: [None, Some("low"), Some("low"), Some("high"), Some("high"), Some("max")],
        replay: Replay::Required,
        parallel_tool_calls: false,
        schemas: false,
        ..Self::OPENAI_COMPATIBLE
    };

    /// [Mistral](https://docs.mistral.ai/api).
    pub const MISTRAL: Self = Self {
        name: "mistral",
        base_url: Some("https://api.mistral.ai/v1"),
        needs_key: true,
        seed: Some("random_seed"),
        efforts: [Some("none"), None, None, Some("high"), Some("high"), Some("high")],
        replay: Replay::Always,
        include_usage: false,
        short_ids: true,
        answers_follow_tools: true,
        unknown_members: false,
        ..Self::OPENAI_COMPATIBLE
    };

    /// [Groq](https://console.groq.com/docs).
    pub const GROQ: Self = Self {
        name: "groq",
        base_url: Some("https://api.groq.com/openai/v1"),
        needs_key: true,
        max_tokens: "max_completion_tokens",
        efforts: THREE_LEVELS,
        unknown_members: false,
        ..Self::OPENAI_COMPATIBLE
    };

    /// [xAI](https://docs.x.ai).
    pub const XAI: Self = Self {
        name: "xai",
        base_url: Some("https://api.x.ai/v1"),
        needs_key: true,
        max_tokens: "max_completion_tokens",
        efforts: THREE_LEVELS,
        // It has no member for reasoning in requests: see <https://docs.x.ai/developers/model-capabilities/text>.
        replay: Replay::Never,
        needs_content: true,
        ..Self::OPENAI_COMPATIBLE
    };

    /// [vLLM](https://docs.vllm.ai).
    pub const VLLM: Self = Self {
        name: "vllm",
        base_url: Some("http://localhost:8000/v1"),
        max_tokens: "max_completion_tokens",
        efforts: THREE_LEVELS,
        ..Self::OPENAI_COMPATIBLE
    };

    /// [LM Studio](https://lmstudio.ai/docs).
    pub const LMSTUDIO: Self = Self {
        name: "lmstudio",
        base_url: Some("http://localhost:1234/v1"),
        efforts: [None, Some("low"), Some("low"), Some("medium"), Some("high"), Some("high")],
        tool_choice: ToolChoices::Words,
        parallel_tool_calls: false,
        ..Self::OPENAI_COMPATIBLE
    };

    /// All providers.
    pub const ALL: [Self; 9] = [
        Self::OPENAI_COMPATIBLE,
        Self::OPENROUTER,
        Self::OLLAMA,
        Self::DEEPSEEK,
        Self::MISTRAL,
        Self::GROQ,
        Self::XAI,
        Self::VLLM,
        Self::LMSTUDIO,
    ];
}

/// Three levels of effort: as little as possible is the lowest one, and as long as possible the highest one.
const THREE_LEVELS: [Option<&str>; 6] =
    [Some("none"), Some("low"), Some("low"), Some("medium"), Some("high"), Some("high")];
