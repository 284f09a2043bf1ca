//! Which addresses are public.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Returns whether an address is one of the public internet: neither of this machine, nor of a private network, nor of
/// a link, nor for another purpose. An IPv6 address that stands for an IPv4 address is judged by that.
pub(crate) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

// The registry of special addresses of IANA, as of RFC 6890 and its updates.
fn is_public_v4(address: Ipv4Addr) -> bool {
    !matches!(
        address.octets(),
        [0 | 10 | 127, ..] // this network, private, loopback
            | [100, 64..=127, ..] // shared by customers of a provider
            | [169, 254, ..] // link-local, with the metadata of clouds
            | [172, 16..=31, ..] | [192, 168, ..] // private
            | [192, 0, 0 | 2, _] | [198, 51, 100, _] | [203, 0, 113, _] // protocols, documentation
            | [192, 88, 99, _] // relays of 6to4
            | [198, 18 | 19, ..] // benchmarks
            | [224..=255, ..] // multicast, reserved, broadcast
    )
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let embedded = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        is_public_v4(Ipv4Addr::new(a, b, c, d))
    };
    match address.segments() {
        [0, 0, 0, 0, 0, 0xffff, high, low] // mapped
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low] // NAT64
        | [0x2002, high, low, ..] => embedded(high, low), // 6to4
        [0x2001, 0..=0x1ff | 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => false, // protocols with Teredo, documentation
        [first, ..] => (0x2000..0x4000).contains(&first), // all that is assigned for the internet
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    #[expect(clippy::too_many_lines, reason = "a table")]
    fn addresses_are_public_or_not() {
        for address in ["1.1.1.1", "8.8.8.8", "100.63.255.255", "100.128.0.1", "172.15.0.1", "172.32.0.1", "192.0.1.1"]
        {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
        for address in ["198.17.0.1", "223.255.255.255", "2606:4700::1111", "2a00:1450::1", "2001:200::1"] {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
        for address in ["::ffff:1.1.1.1", "64:ff9b::1.1.1.1", "2002:101:101::1"] {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
        for address in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "100.64.0.1",
            "100.127.255.255",
            "127.0.0.1",
            "127.255.255.255",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.8",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.0.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::127.0.0.1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::ffff:0:127.0.0.1",
            "64:ff9b::127.0.0.1",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::1",
            "100::1",
            "2001::1",
            "2001:0:1::1",
            "2001:10::1",
            "2001:20::1",
            "2001:1ff::1",
            "2001:db8::1",
            "2002:7f00:1::1",
            "2002:a00:1::",
            "3fff::1",
            "4000::1",
            "5f00::1",
            "fc00::1",
            "fd12::1",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "ff0e::1",
        ] {
            assert!(!is_public(address.parse().unwrap()), "{address}");
        }
    }
}
