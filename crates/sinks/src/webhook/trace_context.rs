//! W3C Trace Context (<https://www.w3.org/TR/trace-context/>) as a producer stored it beside the event.
//!
//! It is passed on as it is, or not at all when it is malformed: a wrong trace must not keep an event from its receiver.

use http::HeaderValue;

/// Longest `traceparent`. The present version has 55 bytes, later ones may add fields.
const MAX_PARENT_BYTES: usize = 256;

/// Longest `tracestate`. At least 512 bytes should be passed on (3.3.1.5); receivers commonly stop at 8 KiB for all
/// headers together.
const MAX_STATE_BYTES: usize = 2048;

/// Most members of a `tracestate` (3.3.1.1).
const MAX_STATE_MEMBERS: usize = 32;

/// A valid trace context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TraceContext {
    parent: String,
    state: Option<String>,
}

/// The two keys among an event's stored headers.
#[derive(serde::Deserialize)]
struct Stored {
    traceparent: Option<serde_json::Value>,
    tracestate: Option<serde_json::Value>,
}

impl TraceContext {
    /// The trace context in an event's stored headers, a JSON object as text, if there is a valid one.
    pub(super) fn of(stored: &str) -> Option<Self> {
        // Most events carry none, and looking for the word is cheaper than parsing.
        if !stored.contains("traceparent") {
            return None;
        }
        let stored: Stored = serde_json::from_str(stored).ok()?;
        let text = |value: Option<serde_json::Value>| value?.as_str().map(str::to_owned);
        let parent = text(stored.traceparent).filter(|parent| is_parent(parent))?;
        // A tracestate means nothing without its traceparent (3.3).
        let state = text(stored.tracestate).filter(|state| is_state(state));
        Some(Self { parent, state })
    }

    pub(super) fn parent(&self) -> &str {
        &self.parent
    }

    pub(super) fn state(&self) -> Option<&str> {
        self.state.as_deref()
    }

    /// The headers `traceparent` and, if there is one, `tracestate`.
    pub(super) fn headers(&self) -> (HeaderValue, Option<HeaderValue>) {
        let value =
            |text: &str| HeaderValue::from_str(text).expect("only visible ASCII and spaces are valid");
        (value(&self.parent), self.state().map(value))
    }
}

/// `version-traceid-parentid-flags`, and for versions above 0 perhaps more (3.2.2).
fn is_parent(text: &str) -> bool {
    let mut fields = text.splitn(5, '-');
    let mut hex = |digits: usize| {
        let lower = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        fields.next().filter(|field| field.len() == digits && field.bytes().all(lower))
    };
    let (Some(version), Some(trace), Some(parent), Some(_flags)) = (hex(2), hex(32), hex(16), hex(2)) else {
        return false;
    };
    let is_zero = |id: &str| id.bytes().all(|byte| byte == b'0');
    let rest = fields.next();
    version != "ff"
        && !is_zero(trace)
        && !is_zero(parent)
        && (version != "00" || rest.is_none())
        && text.len() <= MAX_PARENT_BYTES
        && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// `key=value` pairs divided by commas, each key once (3.3.1).
fn is_state(text: &str) -> bool {
    if text.is_empty() || text.len() > MAX_STATE_BYTES {
        return false;
    }
    let mut keys = Vec::new();
    for member in text.split(',').map(|member| member.trim_matches([' ', '\t'])) {
        if member.is_empty() {
            continue;
        }
        let Some((key, value)) = member.split_once('=') else { return false };
        if !is_state_key(key) || !is_state_value(value) || keys.contains(&key) {
            return false;
        }
        keys.push(key);
    }
    !keys.is_empty() && keys.len() <= MAX_STATE_MEMBERS && !text.contains('\t')
}

fn is_state_key(key: &str) -> bool {
    let is_word = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
            && part.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'*' | b'/'))
    };
    key.len() <= 256 && key.splitn(2, '@').all(is_word)
}

fn is_state_value(value: &str) -> bool {
    !value.is_empty()
        && value.len() <= 256
        && value.bytes().all(|byte| matches!(byte, b' '..=b'~') && !matches!(byte, b',' | b'='))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    fn of(parent: &str, state: &str) -> Option<TraceContext> {
        TraceContext::of(&serde_json::json!({"traceparent": parent, "tracestate": state}).to_string())
    }

    #[test]
    fn a_valid_context_is_passed_on_as_it_is() {
        let state = "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE, 0tenant@sys=a b,,x/y*=~";
        let context = of(PARENT, state).unwrap();
        assert_eq!((context.parent(), context.state()), (PARENT, Some(state)));
        let (parent, found) = context.headers();
        assert_eq!((parent.to_str().unwrap(), found.unwrap().to_str().unwrap()), (PARENT, state));
    }

    #[test]
    fn later_versions_may_carry_more() {
        for parent in [PARENT.replacen("00", "01", 1), PARENT.replacen("00", "cc", 1) + "-what-ever"] {
            assert_eq!(of(&parent, "").unwrap().parent(), parent);
        }
    }

    #[test]
    fn a_malformed_parent_leaves_everything_out() {
        let good = |from: &str, to: &str| PARENT.replacen(from, to, 1);
        for parent in [
            "",
            "00-aa-bb-01",
            &good("00-", "ff-"),
            &good("00-", "0-"),
            &good("0af7651916cd43dd8448eb211c80319c", "00000000000000000000000000000000"),
            &good("b7ad6b7169203331", "0000000000000000"),
            &good("af7", "AF7"),
            &good("-01", "-1"),
            &(PARENT.to_owned() + "-more"),
            &(PARENT.to_owned() + "\r\nx: 1"),
            &(good("00-", "01-") + "-\r\nx: 1"),
            &(good("00-", "01-") + "-" + &"x".repeat(256)),
        ] {
            assert_eq!(of(parent, "a=1"), None, "{parent:?}");
        }
        for stored in ["[]", "traceparent", r#"{"traceparent":7}"#, r#"{"tracestate":"a=1"}"#, "{}"] {
            assert_eq!(TraceContext::of(stored), None, "{stored}");
        }
    }

    #[test]
    fn a_malformed_state_leaves_only_itself_out() {
        let many = (0..33).map(|n| format!("k{n}=1")).collect::<Vec<_>>().join(",");
        let long = format!("a={}", "x".repeat(257));
        for state in [
            "",
            ",",
            "a",
            "a=",
            "=1",
            "A=1",
            "a=1,a=2",
            "a=b=c",
            "a=ü",
            "a=1\r\nx: 1",
            "@a=1",
            "a@=1",
            &many,
            &long,
        ] {
            let context = of(PARENT, state).unwrap();
            assert_eq!(context.state(), None, "{state:?}");
        }
    }
}
