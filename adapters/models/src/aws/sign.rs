//! Signatures of requests, in version 4.

use std::fmt::Write;
use std::time::{SystemTime, UNIX_EPOCH};

use http::Uri;
use http::header::CONTENT_TYPE;
use ring::{digest, hmac};

use super::credentials::Keys;
use crate::http::{Failure, FailureKind, Outgoing};

/// Where a signature is valid, for a day.
#[derive(Clone, Copy)]
pub(super) struct Scope<'a> {
    pub(super) region: &'a str,
    pub(super) service: &'a str,
}

/// Returns the headers that sign a request.
///
/// # Errors
/// When the address cannot be read, or the clock is set to before 1970.
pub(super) fn headers(
    request: &Outgoing,
    keys: &Keys,
    scope: Scope<'_>,
    now: SystemTime,
) -> Result<Vec<(&'static str, String)>, Failure> {
    let impossible = |why| Failure::new(FailureKind::Request, why);
    let uri: Uri = request.url.parse().map_err(|_| impossible("the address of the request cannot be read"))?;
    let time = now.duration_since(UNIX_EPOCH).map_err(|_| impossible("the clock is set to before 1970"))?;
    let time = time_of(time.as_secs());
    let mut headers = vec![("x-amz-date", time.clone())];
    headers.extend(keys.session.as_ref().map(|token| ("x-amz-security-token", token.expose().to_owned())));
    let mut signed: Vec<_> = headers.iter().map(|(name, value)| (*name, &**value)).collect();
    let host = host_of(&uri);
    signed.push(("host", &host));
    let kind = request.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    signed.extend(kind.map(|kind| ("content-type", kind)));
    signed.sort_unstable();
    let authorization = authorization("POST", &uri, &signed, &request.body, keys, scope, &time);
    headers.push(("authorization", authorization));
    Ok(headers)
}

/// Returns the value of the header `authorization`. `headers` are sorted, and `time` is as in `x-amz-date`.
fn authorization(
    method: &str,
    uri: &Uri,
    headers: &[(&str, &str)],
    body: &[u8],
    keys: &Keys,
    Scope { region, service }: Scope<'_>,
    time: &str,
) -> String {
    let names = headers.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(";");
    let lines: String = headers.iter().map(|(name, value)| format!("{name}:{}\n", value.trim())).collect();
    let (path, query) = (encoded_path(uri.path()), uri.query().unwrap_or_default());
    let canonical = format!("{method}\n{path}\n{query}\n{lines}\n{names}\n{}", hash(body));
    let (date, _) = time.split_at(8);
    let scope = format!("{date}/{region}/{service}/aws4_request");
    let to_sign = format!("AWS4-HMAC-SHA256\n{time}\n{scope}\n{}", hash(canonical.as_bytes()));
    let key = signing_key(keys.secret.expose(), [date, region, service]);
    let signature = hex(hmac::sign(&key, to_sign.as_bytes()).as_ref());
    let id = &keys.id;
    format!("AWS4-HMAC-SHA256 Credential={id}/{scope}, SignedHeaders={names}, Signature={signature}")
}

/// Returns the key of a day, a region and a service.
fn signing_key(secret: &str, scope: [&str; 3]) -> hmac::Key {
    let key = |bytes: &[u8]| hmac::Key::new(hmac::HMAC_SHA256, bytes);
    let derived = |from: hmac::Key, text: &str| key(hmac::sign(&from, text.as_bytes()).as_ref());
    let first = key(format!("AWS4{secret}").as_bytes());
    scope.into_iter().chain(["aws4_request"]).fold(first, derived)
}

/// Returns the host as requests name it: without the port that the scheme has anyway.
fn host_of(uri: &Uri) -> String {
    let host = uri.host().unwrap_or_default();
    let own = if uri.scheme_str() == Some("https") { 443 } else { 80 };
    match uri.port_u16().filter(|port| *port != own) {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

/// Encodes a path that is encoded already: all services but S3 want it encoded twice.
fn encoded_path(path: &str) -> String {
    encoded(path, |byte| byte == b'/')
}

/// Encodes bytes that are neither unreserved nor `kept`.
pub(crate) fn encoded(text: &str, kept: impl Fn(u8) -> bool) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) || kept(byte) {
            encoded.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

/// Returns the time as `20150830T123600Z`, from the seconds since 1970.
fn time_of(seconds: u64) -> String {
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Days of eras of 400 years, whose years begin in March so that a leap day is the last one.
    let shifted = days + 719_468;
    let (era, day) = (shifted / 146_097, shifted % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, later) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let year = era * 400 + year + later;
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z")
}

fn hash(bytes: &[u8]) -> String {
    hex(digest::digest(&digest::SHA256, bytes).as_ref())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use goondan_core::Secret;
    use http::{HeaderMap, HeaderValue};

    use super::*;

    fn keys(session: Option<&str>) -> Keys {
        let secret = Secret::new("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY");
        Keys { id: "AKIDEXAMPLE".to_owned(), secret, session: session.map(Secret::new) }
    }

    /// The example in the guide of AWS to signing requests, of IAM's `ListUsers`.
    #[test]
    fn the_example_of_the_documentation_is_signed() {
        let uri = "https://iam.amazonaws.com/?Action=ListUsers&Version=2010-05-08".parse().unwrap();
        let headers = [
            ("content-type", "application/x-www-form-urlencoded; charset=utf-8"),
            ("host", "iam.amazonaws.com"),
            ("x-amz-date", "20150830T123600Z"),
        ];
        let scope = Scope { region: "us-east-1", service: "iam" };
        let signed = authorization("GET", &uri, &headers, b"", &keys(None), scope, "20150830T123600Z");
        assert_eq!(
            signed,
            "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/iam/aws4_request, \
             SignedHeaders=content-type;host;x-amz-date, \
             Signature=5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7"
        );
    }

    /// The same guide's string to sign, under the key that it derives.
    #[test]
    fn the_key_of_the_documentation_is_derived() {
        let to_sign = "AWS4-HMAC-SHA256\n20150830T123600Z\n20150830/us-east-1/iam/aws4_request\n\
                       f536975d06c0309214f805bb90ccff089219ecd68b2577efef23edd43b7e1a59";
        let derived = signing_key(keys(None).secret.expose(), ["20150830", "us-east-1", "iam"]);
        let documented = "c4afb1cc5771d871763a393e44b703571b55cc28424d1a5e86da6ed3c154a4b9";
        let bytes: Vec<_> =
            (0..32).map(|at| u8::from_str_radix(&documented[2 * at..2 * at + 2], 16).unwrap()).collect();
        let documented = hmac::Key::new(hmac::HMAC_SHA256, &bytes);
        for key in [derived, documented] {
            let signature = hex(hmac::sign(&key, to_sign.as_bytes()).as_ref());
            assert_eq!(signature, "5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7");
        }
    }

    /// `post-vanilla`, of the test suite of signatures that AWS publishes.
    #[test]
    fn a_request_of_the_test_suite_is_signed() {
        let uri = "https://example.amazonaws.com/".parse().unwrap();
        let headers = [("host", "example.amazonaws.com"), ("x-amz-date", "20150830T123600Z")];
        let scope = Scope { region: "us-east-1", service: "service" };
        let signed = authorization("POST", &uri, &headers, b"", &keys(None), scope, "20150830T123600Z");
        let expected = "Signature=5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b";
        assert!(signed.ends_with(expected), "{signed}");
    }

    #[test]
    fn the_path_is_encoded_twice_and_the_token_of_a_session_is_signed() {
        assert_eq!(
            encoded_path("/model/amazon.nova-lite-v1%3A0/converse-stream"),
            "/model/amazon.nova-lite-v1%253A0/converse-stream"
        );
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let request = Outgoing::new("http://127.0.0.1:8080/model/m%3A0/converse-stream", headers, &b"{}"[..]);
        let now = UNIX_EPOCH + Duration::from_secs(1_440_938_160);
        let scope = Scope { region: "us-east-1", service: "bedrock" };
        let signed = super::headers(&request, &keys(Some("a-session-token")), scope, now).unwrap();
        let names: Vec<_> = signed.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["x-amz-date", "x-amz-security-token", "authorization"]);
        assert_eq!(signed[0].1, "20150830T123600Z");
        let expected = "SignedHeaders=content-type;host;x-amz-date;x-amz-security-token, Signature=";
        assert!(signed[2].1.contains(expected), "{}", signed[2].1);
    }

    #[test]
    fn times_are_written() {
        for (seconds, time) in [
            (0, "19700101T000000Z"),
            (951_782_399, "20000228T235959Z"),
            (951_782_400, "20000229T000000Z"),
            (1_709_208_000, "20240229T120000Z"),
            (1_735_689_599, "20241231T235959Z"),
            (4_102_444_800, "21000101T000000Z"),
        ] {
            assert_eq!(time_of(seconds), time);
        }
    }
}
