//! The rules: which one a call meets, and what follows.

use std::borrow::Cow;
use std::collections::BTreeMap;

use goondan::prelude::*;
use goondan::tool::Effect;
use goondan::{Map, Value};
use wildmatch::WildMatch;

/// A rule about calls. A call meets it if it fits everything that the rule says.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Rule {
    /// The full name of the tool, with `*` for any characters.
    #[serde(default)]
    tool: Option<Pattern>,
    /// The effect of the tool.
    #[serde(default)]
    effect: Option<RuleEffect>,
    /// Arguments: a JSON pointer such as `/command`, and a pattern with `*` for any characters. Of a value that is no
    /// text, the pattern is compared with its JSON.
    #[serde(default)]
    args: BTreeMap<String, Pattern>,
    /// Why; the person reads it, or the model if the call is denied.
    #[serde(default)]
    because: Option<String>,
}

/// A text with `*` for any characters, and `?` for any one.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(from = "String")]
struct Pattern(#[schemars(with = "String")] WildMatch);

impl From<String> for Pattern {
    fn from(text: String) -> Self {
        Self(WildMatch::new(&text))
    }
}

/// The effect of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum RuleEffect {
    /// It changes nothing.
    Read,
    /// Running it twice does what running it once does.
    Idempotent,
    /// It must not run twice. Also a tool that does not say.
    Once,
}

/// The fate of a call that meets no rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Otherwise {
    /// It runs.
    Allow,
    /// A person is asked.
    #[default]
    Ask,
    /// It never runs.
    Deny,
}

/// A call, as the rules see it.
pub(crate) struct Call<'a> {
    pub(crate) tool: &'a str,
    pub(crate) effect: &'a dyn Fn() -> Effect,
    pub(crate) args: &'a Map<String, Value>,
}

/// The verdict of the rules on a call; with the rule, unless it meets none.
#[derive(Clone, Copy)]
pub(crate) enum Standing<'r> {
    Denied(Why<'r>),
    Asked(Why<'r>),
    Allowed,
}

/// The rule that a call meets, if there is one.
#[derive(Clone, Copy)]
pub(crate) struct Why<'r>(Option<&'r Rule>);

impl<'r> Why<'r> {
    /// Returns what the rule says, or `otherwise`.
    pub(crate) fn why(self, otherwise: &'static str) -> Cow<'static, str> {
        match self.0.and_then(|rule| rule.because.clone()) {
            Some(because) => Cow::Owned(because),
            None => Cow::Borrowed(otherwise),
        }
    }
}

impl Standing<'_> {
    pub(crate) fn is_allowed(self) -> bool {
        matches!(self, Self::Allowed)
    }

    /// Returns why a person is asked, if the rule says so.
    pub(crate) fn why(self) -> Option<String> {
        match self {
            Self::Asked(Why(rule)) => rule?.because.clone(),
            _ => None,
        }
    }
}

/// All rules. They are tried in this order: `deny`, `ask` by tool, `allow`, `ask` by effect, `otherwise`.
#[derive(Debug)]
pub(crate) struct Rules {
    deny: Vec<Rule>,
    ask: Vec<Rule>,
    allow: Vec<Rule>,
    otherwise: Otherwise,
}

impl Rules {
    /// # Errors
    /// When a rule says nothing, or a pointer is none.
    pub(crate) fn new(deny: Vec<Rule>, ask: Vec<Rule>, allow: Vec<Rule>, otherwise: Otherwise) -> Result<Self> {
        for (list, rules) in [("deny", &deny), ("ask", &ask), ("allow", &allow)] {
            for (index, rule) in rules.iter().enumerate() {
                let place = format!("{list}[{index}]");
                if rule.tool.is_none() && rule.effect.is_none() && rule.args.is_empty() {
                    return Err(Error::msg(format!("`{place}` says nothing, and would fit every call"))
                        .suggest("name a tool, an effect or an argument; `otherwise` is about all other calls"));
                }
                if let Some(pointer) = rule.args.keys().find(|pointer| !pointer.starts_with('/')) {
                    return Err(Error::msg(format!("`{pointer}` in `{place}.args` is no JSON pointer"))
                        .suggest(format!("write `/{pointer}`")));
                }
            }
        }
        Ok(Self { deny, ask, allow, otherwise })
    }

    /// Returns what the rules say of a call.
    pub(crate) fn standing(&self, call: &Call<'_>) -> Standing<'_> {
        if let Some(rule) = self.deny.iter().find(|rule| rule.fits(call, false)) {
            return Standing::Denied(Why(Some(rule)));
        }
        if let Some(rule) = self.ask.iter().find(|rule| rule.tool.is_some() && rule.fits(call, false)) {
            return Standing::Asked(Why(Some(rule)));
        }
        if self.allow.iter().any(|rule| rule.fits(call, true)) {
            return Standing::Allowed;
        }
        if let Some(rule) = self.ask.iter().find(|rule| rule.tool.is_none() && rule.fits(call, false)) {
            return Standing::Asked(Why(Some(rule)));
        }
        match self.otherwise {
            Otherwise::Allow => Standing::Allowed,
            Otherwise::Ask => Standing::Asked(Why(None)),
            Otherwise::Deny => Standing::Denied(Why(None)),
        }
    }

    /// Returns the rules as text, in the order in which they are tried.
    pub(crate) fn lines(&self) -> Vec<String> {
        let line = |what: &'static str| move |rule: &Rule| format!("{what} {}", rule.line());
        let (by_tool, by_effect): (Vec<_>, Vec<_>) = self.ask.iter().partition(|rule| rule.tool.is_some());
        let deny = self.deny.iter().map(line("deny"));
        let asked = by_tool.into_iter().map(line("ask"));
        let allowed = self.allow.iter().map(line("allow"));
        let asked_by_effect = by_effect.into_iter().map(line("ask"));
        let otherwise = match self.otherwise {
            Otherwise::Allow => "otherwise allow",
            Otherwise::Ask => "otherwise ask",
            Otherwise::Deny => "otherwise deny",
        };
        deny.chain(asked).chain(allowed).chain(asked_by_effect).chain([otherwise.to_owned()]).collect()
    }
}

impl Rule {
    /// Whether a call fits the rule. One that allows does not fit an argument that leads up with `..`, unless its pattern
    /// does so too: `work/*` is not about `work/../.ssh`.
    fn fits(&self, call: &Call<'_>, is_allowing: bool) -> bool {
        self.tool.as_ref().is_none_or(|pattern| pattern.0.matches(call.tool))
            && self.effect.is_none_or(|effect| effect == RuleEffect::of((call.effect)()))
            && self.args.iter().all(|(pointer, pattern)| {
                let Some(text) = at(call.args, pointer) else { return false };
                pattern.0.matches(&text) && !(is_allowing && leads_up(&text) && !leads_up(&pattern.0.pattern()))
            })
    }

    fn line(&self) -> String {
        let effect = self.effect.map(|effect| format!("effect {}", format!("{effect:?}").to_lowercase()));
        let args = self.args.iter().map(|(pointer, pattern)| format!("{pointer} {}", pattern.0));
        self.tool.iter().map(|tool| tool.0.pattern()).chain(effect).chain(args).collect::<Vec<_>>().join(", ")
    }
}

impl RuleEffect {
    fn of(effect: Effect) -> Self {
        match effect {
            Effect::Read => Self::Read,
            Effect::Idempotent => Self::Idempotent,
            _ => Self::Once,
        }
    }
}

/// Returns the argument at a pointer, as text.
fn at<'a>(args: &'a Map<String, Value>, pointer: &str) -> Option<Cow<'a, str>> {
    let mut segments =
        pointer.strip_prefix('/')?.split('/').map(|segment| segment.replace("~1", "/").replace("~0", "~"));
    let first = args.get(&segments.next()?)?;
    let value = segments.try_fold(first, |value, segment| match value {
        Value::Object(members) => members.get(&segment),
        Value::Array(items) => items.get(segment.parse::<usize>().ok()?),
        _ => None,
    })?;
    Some(match value {
        Value::String(text) => Cow::Borrowed(text),
        other => Cow::Owned(other.to_string()),
    })
}

fn leads_up(path: &str) -> bool {
    path.split(['/', '\\']).any(|segment| segment == "..")
}

#[cfg(test)]
mod tests {
    use goondan::json;

    use super::*;

    fn rules(config: Value) -> Result<Rules> {
        let list = |name: &str| Vec::<Rule>::deserialize(config.get(name).cloned().unwrap_or(json!([]))).unwrap();
        let otherwise = config.get("otherwise").cloned().map(|it| Otherwise::deserialize(it).unwrap());
        Rules::new(list("deny"), list("ask"), list("allow"), otherwise.unwrap_or_default())
    }

    fn standing(rules: &Rules, tool: &str, effect: Effect, args: Value) -> &'static str {
        let args = args.as_object().cloned().unwrap();
        match rules.standing(&Call { tool, effect: &|| effect, args: &args }) {
            Standing::Denied(_) => "deny",
            Standing::Asked(_) => "ask",
            Standing::Allowed => "allow",
        }
    }

    #[test]
    fn rules_are_tried_in_the_order_of_their_strength() {
        let rules = rules(json!({
            "deny": [{ "tool": "bash__*", "args": { "/command": "*rm -rf*" } }],
            "ask": [{ "tool": "shop__refund" }, { "effect": "once" }],
            "allow": [
                { "tool": "fs__write", "args": { "/path": "work/*" } },
                { "tool": "bash__*", "args": { "/command": "git status*" } },
                { "tool": "shop__refund" }, { "args": { "/deep/0/a~1b": "7" } },
            ],
            "otherwise": "allow",
        }))
        .unwrap();
        for (tool, effect, args, expected) in [
            ("bash__exec", Effect::Once, json!({ "command": "git status; rm -rf /" }), "deny"),
            ("bash__exec", Effect::Once, json!({ "command": "git status" }), "allow"),
            ("bash__exec", Effect::Once, json!({ "command": "ls" }), "ask"),
            ("bash__exec", Effect::Once, json!({}), "ask"),
            ("shop__refund", Effect::Read, json!({}), "ask"),
            ("fs__write", Effect::Once, json!({ "path": "work/a/b" }), "allow"),
            ("fs__write", Effect::Once, json!({ "path": "work/../.ssh/config" }), "ask"),
            ("fs__write", Effect::Once, json!({ "path": ["work/a"] }), "ask"),
            ("any__tool", Effect::Once, json!({ "deep": [{ "a/b": 7 }] }), "allow"),
            ("any__tool", Effect::Idempotent, json!({}), "allow"),
        ] {
            assert_eq!(standing(&rules, tool, effect, args.clone()), expected, "{tool} {args}");
        }
        assert_eq!(rules.lines()[2], "allow fs__write, /path work/*");
        assert_eq!(rules.lines().last().unwrap(), "otherwise allow");
    }

    #[test]
    fn without_rules_a_person_is_asked() {
        let rules = rules(json!({})).unwrap();
        assert_eq!(standing(&rules, "fs__read", Effect::Read, json!({})), "ask");
    }

    #[test]
    fn rules_that_say_nothing_are_refused() {
        let error = rules(json!({ "deny": [{}] })).unwrap_err();
        assert!(error.message().contains("`deny[0]` says nothing"), "{error:?}");
        let error = rules(json!({ "allow": [{ "args": { "path": "*" } }] })).unwrap_err();
        assert_eq!(error.suggestion(), Some("write `/path`"));
    }
}
