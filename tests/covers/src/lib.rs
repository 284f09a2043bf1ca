//! The attributes of tests: `covers` names the requirements that a test proves, `both_linkages` runs it in both
//! linkages.

mod linkages;

use proc_macro::{Delimiter, Group, Ident, Literal, Punct, Spacing, Span, TokenStream, TokenTree};

const REQUIREMENTS: &str = include_str!("../../../docs/requirements.md");

/// Marks a test as the proof of rows of `docs/requirements.md`: `#[covers("PIPE-03", "NEXT-01")]`.
///
/// The attribute leaves the test unchanged. An id that the document does not have is a compile error at the id.
#[proc_macro_attribute]
pub fn covers(ids: TokenStream, test: TokenStream) -> TokenStream {
    let mut output = TokenStream::new();
    for token in ids {
        let text = token.to_string();
        let id = text.trim_matches('"');
        if text != "," && !REQUIREMENTS.lines().any(|row| row.starts_with(&format!("| {id} |"))) {
            output.extend(compile_error(&format!("docs/requirements.md has no row {text}"), token.span()));
        }
    }
    output.extend(test);
    output
}

/// Turns a case into two tests, `linked` and `loaded`, in a module that is named like the case. `#[both_linkages]`
/// replaces `#[tokio::test]` and takes the same arguments.
///
/// The crate of the tests must have a type `crate::linkage::Linkage`, which runs a case in a linkage. The case is
/// registered too, for the test that interrupts its turns at every write (RESUME-01).
#[proc_macro_attribute]
pub fn both_linkages(arguments: TokenStream, case: TokenStream) -> TokenStream {
    linkages::expand(&arguments, case)
}

/// Lets the turns of a function that cases call be interrupted, as those of the cases themselves.
#[proc_macro_attribute]
pub fn interruptible(_: TokenStream, function: TokenStream) -> TokenStream {
    linkages::interruptible(function)
}

fn compile_error(message: &str, span: Span) -> [TokenTree; 3] {
    let mut literal = Literal::string(message);
    literal.set_span(span);
    let mut arguments = Group::new(Delimiter::Brace, TokenTree::from(literal).into());
    arguments.set_span(span);
    [Ident::new("compile_error", span).into(), Punct::new('!', Spacing::Alone).into(), arguments.into()]
}
