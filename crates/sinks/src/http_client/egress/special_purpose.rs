//! Addresses that are not of the public internet.
//!
//! From the special-purpose registries of IANA (RFC 6890): <https://www.iana.org/assignments/iana-ipv4-special-registry>,
//! <https://www.iana.org/assignments/iana-ipv6-special-registry>. Ranges that no web server is in are left out of the
//! public internet even where the registry calls them globally reachable (relays, sinkholes, identifiers).

use std::net::{IpAddr, Ipv6Addr};

use super::network::Network;

/// The only IPv6 addresses that are given out for the public internet (RFC 4291, 2.4; IANA's address space registry).
const GLOBAL_UNICAST: Network = Network::v6(0x2000, 0, 0, 3);

/// First match decides what an address is called.
const SPECIAL: [(Network, &str); 46] = [
    // Services that a cloud offers to its machines: credentials, user data, agents.
    (Network::v4(169, 254, 169, 254, 32), "a cloud's metadata service"),
    (Network::v4(168, 63, 129, 16, 32), "a cloud's metadata service (Azure)"),
    (Network::v4(100, 100, 100, 200, 32), "a cloud's metadata service (Alibaba)"),
    (Network::v4(192, 0, 0, 192, 32), "a cloud's metadata service (Oracle)"),
    (
        Network::v6_at(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254), 128),
        "a cloud's metadata service (AWS)",
    ),
    (
        Network::v6_at(Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254), 128),
        "a cloud's metadata service (Google)",
    ),
    (Network::v4(0, 0, 0, 0, 32), "the unspecified address"),
    (Network::v4(0, 0, 0, 0, 8), "an address of this network"),
    (Network::v4(10, 0, 0, 0, 8), "a private address"),
    (Network::v4(100, 64, 0, 0, 10), "an address behind a carrier's NAT"),
    (Network::v4(127, 0, 0, 0, 8), "a loopback address"),
    (Network::v4(169, 254, 0, 0, 16), "a link-local address"),
    (Network::v4(172, 16, 0, 0, 12), "a private address"),
    (Network::v4(192, 0, 0, 0, 24), "an address for protocol assignments"),
    (Network::v4(192, 0, 2, 0, 24), "an address for documentation"),
    (Network::v4(192, 31, 196, 0, 24), "an address of the AS112 sinkhole"),
    (Network::v4(192, 52, 193, 0, 24), "a multicast tunnelling address"),
    (Network::v4(192, 88, 99, 0, 24), "a 6to4 relay address"),
    (Network::v4(192, 168, 0, 0, 16), "a private address"),
    (Network::v4(192, 175, 48, 0, 24), "an address of the AS112 sinkhole"),
    (Network::v4(198, 18, 0, 0, 15), "an address for benchmarks"),
    (Network::v4(198, 51, 100, 0, 24), "an address for documentation"),
    (Network::v4(203, 0, 113, 0, 24), "an address for documentation"),
    (Network::v4(224, 0, 0, 0, 4), "a multicast address"),
    (Network::v4(255, 255, 255, 255, 32), "the broadcast address"),
    (Network::v4(240, 0, 0, 0, 4), "a reserved address"),
    (Network::v6_at(Ipv6Addr::UNSPECIFIED, 128), "the unspecified address"),
    (Network::v6_at(Ipv6Addr::LOCALHOST, 128), "a loopback address"),
    // Ways to write or to wrap an IPv4 address. What is inside does not matter: nobody needs them to be reached.
    (Network::v6_at(MAPPED, 96), "an IPv4 address written as IPv6 (v4-mapped)"),
    (Network::v6_at(TRANSLATED, 96), "an IPv4 address written as IPv6 (v4-translated)"),
    (Network::v6(0, 0, 0, 96), "an IPv4 address written as IPv6 (v4-compatible)"),
    (Network::v6(0x64, 0xff9b, 0, 96), "an IPv4 address behind NAT64"),
    (Network::v6(0x64, 0xff9b, 1, 48), "an IPv4 address behind local NAT64"),
    (Network::v6(0x2002, 0, 0, 16), "an IPv4 address wrapped as 6to4"),
    (Network::v6(0x2001, 0, 0, 32), "an IPv4 address wrapped as Teredo"),
    (Network::v6(0x100, 0, 0, 64), "a discard-only address"),
    (Network::v6(0x2001, 2, 0, 48), "an address for benchmarks"),
    (Network::v6(0x2001, 0xdb8, 0, 32), "an address for documentation"),
    (Network::v6(0x2001, 0, 0, 23), "an address for protocol assignments"),
    (Network::v6(0x3fff, 0, 0, 20), "an address for documentation"),
    (Network::v6(0x3ffe, 0, 0, 16), "a returned address (6bone)"),
    (Network::v6(0x2620, 0x4f, 0x8000, 48), "an address of the AS112 sinkhole"),
    (Network::v6(0xfc00, 0, 0, 7), "a unique local address"),
    (Network::v6(0xfe80, 0, 0, 10), "a link-local address"),
    (Network::v6(0xfec0, 0, 0, 10), "a site-local address"),
    (Network::v6(0xff00, 0, 0, 8), "a multicast address"),
];

const MAPPED: Ipv6Addr = Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, 0, 0);
const TRANSLATED: Ipv6Addr = Ipv6Addr::new(0, 0, 0, 0, 0xffff, 0, 0, 0);

/// What `address` is, if it is not one of the public internet.
pub(super) fn description(address: IpAddr) -> Option<&'static str> {
    if let Some((_, what)) = SPECIAL.iter().find(|(network, _)| network.contains(address)) {
        return Some(what);
    }
    (address.is_ipv6() && !GLOBAL_UNICAST.contains(address))
        .then_some("an address outside of what is given out for the internet")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_address_that_is_not_public_is_known_by_name() {
        for (addresses, hint) in [
            (&["169.254.169.254", "fd00:ec2::254", "168.63.129.16", "100.100.100.200"][..], "metadata"),
            (&["0.0.0.0", "::"], "unspecified"),
            (&["0.1.2.3"], "this network"),
            (&["10.0.0.0", "10.255.255.255", "172.16.0.1", "172.31.255.255", "192.168.0.1"], "private"),
            (&["100.64.0.1", "100.127.255.255"], "carrier"),
            (&["127.0.0.1", "127.255.255.255", "::1"], "loopback"),
            (&["169.254.0.1", "fe80::1", "febf::1"], "link-local"),
            (&["192.0.0.8", "2001:1::1", "2001:1ff:ffff::1"], "protocol assignments"),
            (&["192.0.2.1", "198.51.100.1", "203.0.113.255", "2001:db8::1", "3fff:fff::1"], "documentation"),
            (&["198.18.0.1", "198.19.255.255", "2001:2::1"], "benchmarks"),
            (&["224.0.0.1", "239.255.255.255", "ff02::1"], "multicast"),
            (&["240.0.0.1", "255.255.255.254"], "reserved"),
            (&["255.255.255.255"], "broadcast"),
            (&["::ffff:127.0.0.1", "::ffff:8.8.8.8"], "v4-mapped"),
            (&["::127.0.0.1", "::8.8.8.8"], "v4-compatible"),
            (&["64:ff9b::7f00:1", "64:ff9b::808:808", "64:ff9b:1::a00:1"], "NAT64"),
            (&["2002:7f00:1::", "2002:808:808::1"], "6to4"),
            (&["2001::1", "2001:0:7f00:1::"], "Teredo"),
            (&["100::1"], "discard"),
            (&["fc00::1", "fdff::1"], "unique local"),
            (&["fec0::1", "feff::1"], "site-local"),
            (&["4000::1", "1::1", "5f00::1", "100:0:0:1::1", "64:ff9b:2::1"], "outside"),
        ] {
            for address in addresses {
                let what = description(address.parse().unwrap()).unwrap_or("public");
                assert!(what.contains(hint), "{address} is {what}, not {hint}");
            }
        }
    }

    #[test]
    fn addresses_right_beside_the_special_ones_are_public() {
        for address in [
            "1.1.1.1",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "169.253.255.255",
            "172.15.255.255",
            "172.32.0.0",
            "192.167.255.255",
            "192.169.0.0",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "2000::1",
            "2001:200::1",
            "2001:4860:4860::8888",
            "2003::1",
            "2606:4700::1111",
            "3ffd::1",
            "3fff:1000::1",
        ] {
            assert_eq!(description(address.parse().unwrap()), None, "{address}");
        }
    }
}
