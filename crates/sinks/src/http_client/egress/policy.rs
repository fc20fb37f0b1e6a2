//! The policy itself.

use std::fmt;
use std::net::IpAddr;

use super::network::{Network, NetworkError};
use super::special_purpose;

/// The word for addresses of the public internet.
const PUBLIC: &str = "public";

/// The word for everything.
const UNRESTRICTED: &str = "unrestricted";

/// Which addresses a destination may be connected to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Egress {
    /// `None`: everything is allowed.
    allowed: Option<Vec<Allowed>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Allowed {
    Public,
    Network(Network),
}

/// Words that name no policy; the message says what to write.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EgressError {
    /// Nothing was given, so that nothing could be reached.
    #[error("the list is empty, so nothing could be reached: name \"public\" or networks")]
    Empty,
    /// `unrestricted` beside something else.
    #[error("\"unrestricted\" allows everything and stands alone")]
    NotAlone,
    /// A word that is neither a policy nor a network.
    #[error("{0:?} is neither \"public\" nor \"unrestricted\" nor a network such as \"10.1.0.0/16\"")]
    Unknown(String),
    /// A network that is wrong in itself.
    #[error(transparent)]
    Network(#[from] NetworkError),
}

impl Egress {
    /// Every address. For destinations that the operator wrote down.
    #[must_use]
    pub const fn unrestricted() -> Self {
        Self { allowed: None }
    }

    /// Addresses of the public internet and nothing else. For destinations that users supply.
    #[must_use]
    pub fn public() -> Self {
        Self { allowed: Some(vec![Allowed::Public]) }
    }

    /// What is listed and nothing else: `public`, networks such as `10.1.0.0/16`, or both; or `unrestricted` alone.
    ///
    /// # Errors
    /// When the list is empty or holds something else.
    pub fn listed<'a>(words: impl IntoIterator<Item = &'a str>) -> Result<Self, EgressError> {
        let words: Vec<&str> = words.into_iter().collect();
        if words.contains(&UNRESTRICTED) {
            return if words.len() == 1 { Ok(Self::unrestricted()) } else { Err(EgressError::NotAlone) };
        }
        if words.is_empty() {
            return Err(EgressError::Empty);
        }
        let allowed = words.into_iter().map(allowed).collect::<Result<_, _>>()?;
        Ok(Self { allowed: Some(allowed) })
    }

    /// Whether every address is allowed.
    #[must_use]
    pub fn is_unrestricted(&self) -> bool {
        self.allowed.is_none()
    }

    /// Nothing when `address` is allowed, otherwise what it is: `a private address`.
    pub(in crate::http_client) fn refusal(&self, address: IpAddr) -> Option<&'static str> {
        let allowed = self.allowed.as_ref()?;
        let special = special_purpose::description(address);
        let fits = |rule: &Allowed| match rule {
            Allowed::Public => special.is_none(),
            Allowed::Network(network) => network.contains(address),
        };
        (!allowed.iter().any(fits)).then_some(special.unwrap_or("a public address"))
    }
}

fn allowed(word: &str) -> Result<Allowed, EgressError> {
    if word == PUBLIC {
        return Ok(Allowed::Public);
    }
    if !word.contains(['.', ':', '/']) {
        return Err(EgressError::Unknown(word.to_owned()));
    }
    Ok(Allowed::Network(word.parse()?))
}

impl fmt::Display for Egress {
    /// As an operator would write it: `public, 10.1.0.0/16`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(allowed) = &self.allowed else { return f.write_str(UNRESTRICTED) };
        for (position, rule) in allowed.iter().enumerate() {
            if position > 0 {
                f.write_str(", ")?;
            }
            match rule {
                Allowed::Public => f.write_str(PUBLIC)?,
                Allowed::Network(network) => write!(f, "{network}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allows(egress: &Egress, address: &str) -> bool {
        egress.refusal(address.parse().unwrap()).is_none()
    }

    #[test]
    fn public_is_the_internet_and_nothing_else() {
        assert!(allows(&Egress::public(), "1.1.1.1"));
        assert!(!allows(&Egress::public(), "10.0.0.1"));
        assert!(!allows(&Egress::public(), "::ffff:1.1.1.1"));
    }

    #[test]
    fn a_list_allows_what_it_names_and_nothing_else() {
        let inside = Egress::listed(["10.1.0.0/16", "fd12::/16"]).unwrap();
        assert!(allows(&inside, "10.1.2.3") && allows(&inside, "fd12::1"));
        assert!(!allows(&inside, "10.2.0.1") && !allows(&inside, "1.1.1.1"));
        assert!(!allows(&inside, "::ffff:10.1.2.3"), "another spelling is not what was allowed");
        let both = Egress::listed(["public", "10.1.0.0/16"]).unwrap();
        assert!(allows(&both, "10.1.2.3") && allows(&both, "1.1.1.1") && !allows(&both, "10.2.0.1"));
    }

    #[test]
    fn unrestricted_is_everything() {
        assert!(allows(&Egress::unrestricted(), "169.254.169.254"));
        assert!(Egress::listed(["unrestricted"]).unwrap().is_unrestricted());
    }

    #[test]
    fn a_policy_that_cannot_be_meant_is_refused() {
        for (words, hint) in [
            (&[][..], "empty"),
            (&["unrestricted", "10.0.0.0/8"], "stands alone"),
            (&["privat"], "neither"),
            (&["10.0.0.1/8"], "10.0.0.0/8"),
        ] {
            let error = Egress::listed(words.iter().copied()).unwrap_err().to_string();
            assert!(error.contains(hint), "{error}");
        }
    }

    #[test]
    fn a_policy_is_shown_as_it_is_written() {
        assert_eq!(Egress::unrestricted().to_string(), "unrestricted");
        assert_eq!(Egress::listed(["public", "10.1.0.0/16"]).unwrap().to_string(), "public, 10.1.0.0/16");
    }
}
