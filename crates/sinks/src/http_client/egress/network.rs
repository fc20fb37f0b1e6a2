//! A range of addresses.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// All addresses that begin with the same bits, as CIDR writes it: `10.0.0.0/8`, `fd00::/8`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    first: IpAddr,
    prefix: u8,
}

/// A text that is no network; the message says what to write.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NetworkError(String);

impl Network {
    pub(super) const fn v4(a: u8, b: u8, c: u8, d: u8, prefix: u8) -> Self {
        Self { first: IpAddr::V4(Ipv4Addr::new(a, b, c, d)), prefix }
    }

    pub(super) const fn v6(a: u16, b: u16, c: u16, prefix: u8) -> Self {
        Self { first: IpAddr::V6(Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0)), prefix }
    }

    pub(super) const fn v6_at(first: Ipv6Addr, prefix: u8) -> Self {
        Self { first: IpAddr::V6(first), prefix }
    }

    /// Whether `address` is in it. An IPv4 address is in no IPv6 network, not even written as `::ffff:…`.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.first, address) {
            (IpAddr::V4(first), IpAddr::V4(address)) => {
                same_beginning(first.to_bits().into(), address.to_bits().into(), 32, self.prefix)
            }
            (IpAddr::V6(first), IpAddr::V6(address)) => {
                same_beginning(first.to_bits(), address.to_bits(), 128, self.prefix)
            }
            _ => false,
        }
    }

    /// The network of `prefix` bits that `address` is in.
    fn around(address: IpAddr, prefix: u8) -> IpAddr {
        match address {
            IpAddr::V4(address) => {
                let mask = u32::MAX.checked_shl(u32::from(32 - prefix)).unwrap_or(0);
                IpAddr::V4(Ipv4Addr::from_bits(address.to_bits() & mask))
            }
            IpAddr::V6(address) => {
                let mask = u128::MAX.checked_shl(u32::from(128 - prefix)).unwrap_or(0);
                IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & mask))
            }
        }
    }
}

fn same_beginning(one: u128, other: u128, bits: u8, prefix: u8) -> bool {
    (one ^ other).checked_shr(u32::from(bits - prefix)).unwrap_or(0) == 0
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.first, self.prefix)
    }
}

impl FromStr for Network {
    type Err = NetworkError;

    /// Reads `address/bits`, or an address alone for a network of one.
    fn from_str(text: &str) -> Result<Self, NetworkError> {
        let (address, bits) =
            text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
        let first: IpAddr = address.parse().map_err(|_| {
            NetworkError(format!("{text:?} is no network: write for example \"10.1.0.0/16\""))
        })?;
        let longest = if first.is_ipv4() { 32 } else { 128 };
        let prefix = match bits {
            None => longest,
            Some(bits) => bits.parse().ok().filter(|&bits| bits <= longest).ok_or_else(|| {
                NetworkError(format!(
                    "{text:?} is no network: after the / comes a number from 0 to {longest}"
                ))
            })?,
        };
        let start = Self::around(first, prefix);
        if start != first {
            return Err(NetworkError(format!(
                "{text:?} begins inside its network: write \"{start}/{prefix}\""
            )));
        }
        Ok(Self { first, prefix })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contains(network: &str, address: &str) -> bool {
        network.parse::<Network>().unwrap().contains(address.parse().unwrap())
    }

    #[test]
    fn a_network_holds_what_begins_with_its_bits() {
        for (network, inside, outside) in [
            ("10.0.0.0/8", "10.255.0.1", "11.0.0.0"),
            ("100.64.0.0/10", "100.127.255.255", "100.128.0.0"),
            ("192.0.2.7", "192.0.2.7", "192.0.2.8"),
            ("0.0.0.0/0", "255.255.255.255", "::ffff:1.2.3.4"),
            ("fd00::/8", "fdff::1", "fc00::1"),
            ("::1", "::1", "::2"),
            ("::/0", "ffff::", "1.2.3.4"),
        ] {
            assert!(contains(network, inside), "{inside} in {network}");
            assert!(!contains(network, outside), "{outside} in {network}");
        }
    }

    #[test]
    fn what_is_no_network_is_refused_with_what_to_write() {
        for (text, hint) in [
            ("", "is no network"),
            ("ten", "is no network"),
            ("10.0.0.0/33", "0 to 32"),
            ("fd00::/129", "0 to 128"),
            ("10.0.0.0/", "0 to 32"),
            ("10.1.2.3/8", "write \"10.0.0.0/8\""),
            ("fd00::1/8", "write \"fd00::/8\""),
            ("0x7f.1/8", "is no network"),
        ] {
            let error = text.parse::<Network>().expect_err(text).to_string();
            assert!(error.contains(hint), "{error}");
        }
    }

    #[test]
    fn a_network_is_shown_as_it_is_read() {
        for text in ["10.0.0.0/8", "fd00::/8", "127.0.0.1/32"] {
            assert_eq!(text.parse::<Network>().unwrap().to_string(), text);
        }
    }
}
