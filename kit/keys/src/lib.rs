//! The shapes of services' keys, as regular expressions: for what must not be recorded or told.
//!
//! ```
//! let rules = goondan_keys::RULES.iter();
//! let github = rules.filter(|rule| rule.service == "of GitHub");
//! assert!(github.into_iter().any(|rule| rule.pattern.starts_with("gh")));
//! ```
// ENV-01

/// The shape of a kind of keys.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// Where such a key belongs, after the word "key": such as `of GitHub`.
    pub service: &'static str,
    /// A regular expression that matches such a key. The character before a key is none that keys have: no letter,
    /// digit, hyphen or underscore.
    pub pattern: &'static str,
}

impl Rule {
    const fn new(service: &'static str, pattern: &'static str) -> Self {
        Self { service, pattern }
    }
}

/// Returns whether a text that a pattern matches is a key: words that are joined by hyphens have no digits.
pub fn is_key(found: &str) -> bool {
    // The first line of a file need not have one.
    found.starts_with('-') || found.bytes().any(|byte| byte.is_ascii_digit())
}

/// The rules.
pub const RULES: [Rule; 22] = [
    Rule::new("of a provider of models", r"(?:sk-|gsk_|xai-|pplx-|r8_|tvly-)[A-Za-z0-9_-]{16,}"),
    Rule::new("of Google", r"AIza[A-Za-z0-9_-]{16,}|GOCSPX-[A-Za-z0-9_-]{16,}|ya29\.[A-Za-z0-9_-]{16,}"),
    Rule::new("of GitHub", r"gh[pousr]_[A-Za-z0-9]{16,}|github_pat_[A-Za-z0-9_]{16,}"),
    Rule::new("of GitLab", r"gl(?:pat|dt|rt|ptt|ft|soat)-[A-Za-z0-9_-]{16,}"),
    Rule::new("of AWS", r"(?:AKIA|ASIA|ABIA)[A-Z0-9]{16,}"),
    Rule::new("of AWS", r#"(?i:aws_?secret_?(?:access_?)?key|secretaccesskey)[\\"'\s:=]{1,8}[A-Za-z0-9/+]{40}"#),
    Rule::new("of Azure", r"(?:AccountKey|SharedAccessKey)=[A-Za-z0-9+/]{32,}"),
    Rule::new("of Slack", r"xox[a-z]-[A-Za-z0-9-]{10,}|xapp-[A-Za-z0-9-]{10,}"),
    Rule::new("of Slack", r"https://hooks\.slack\.com/services/[A-Za-z0-9/]{16,}"),
    Rule::new("of Stripe", r"(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{16,}|whsec_[A-Za-z0-9+/]{16,}"),
    Rule::new("of Twilio", r"SK[0-9a-f]{32}"),
    Rule::new("of SendGrid", r"SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    Rule::new("of Hugging Face", r"(?:hf|api_org)_[A-Za-z0-9]{16,}"),
    Rule::new(
        "of a registry",
        r"npm_[A-Za-z0-9]{30,}|pypi-[A-Za-z0-9_-]{16,}|cio[A-Za-z0-9]{32}|dckr_pat_[A-Za-z0-9_-]{16,}",
    ),
    Rule::new("of a cloud", r"do[opr]_v1_[0-9a-f]{32,}|shp(?:at|ca|pa|ss)_[A-Za-z0-9]{16,}|hvs\.[A-Za-z0-9_-]{16,}"),
    Rule::new("of a service", r"(?:lin_api|ntn|secret|figd|sntrys|dapi|PMAK)[_-]?[A-Za-z0-9_-]{32,}"),
    Rule::new("of Telegram", r"[0-9]{8,10}:AA[A-Za-z0-9_-]{33}"),
    Rule::new("in a web token", r"eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}"),
    Rule::new("in a header", r"(?i:bearer) +[A-Za-z0-9._~+/-]{16,}"),
    Rule::new("in a header", r"(?i:basic) +[A-Za-z0-9+/]{16,}={0,2}"),
    Rule::new("in an address", r#"[a-z][a-z0-9+.-]{1,20}://[^\s:/@"'\\]{1,64}:[^\s/@"'\\]{8,}@"#),
    Rule::new("in a file", r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----|AGE-SECRET-KEY-1[A-Z0-9]{16,}"),
];
