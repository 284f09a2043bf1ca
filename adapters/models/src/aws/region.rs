//! Regions of AWS, and the addresses of Bedrock in them.

/// Returns the address of Bedrock's models in a region.
pub(crate) fn address(region: &str) -> String {
    let domain = if region.starts_with("cn-") { "amazonaws.com.cn" } else { "amazonaws.com" };
    format!("https://bedrock-runtime.{region}.{domain}")
}

/// Whether a text has the form of a region, such as `eu-central-1`. It becomes a part of a host.
pub(crate) fn is_region(text: &str) -> bool {
    let is_part = |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    text.contains('-') && text.split('-').all(is_part)
}

/// Whether a host belongs to AWS.
pub(crate) fn is_aws(host: &str) -> bool {
    [".amazonaws.com", ".amazonaws.com.cn", ".api.aws"].iter().any(|domain| host.ends_with(domain))
}

/// Returns the region that a host of Bedrock is in: it follows the name of the service.
pub(crate) fn region_of(host: &str) -> Option<&str> {
    let mut labels = host.split('.').skip_while(|label| !label.starts_with("bedrock-runtime"));
    labels.nth(1).filter(|region| is_aws(host) && is_region(region))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_region_of_a_host_is_found() {
        for (host, region) in [
            ("bedrock-runtime.eu-central-1.amazonaws.com", Some("eu-central-1")),
            ("bedrock-runtime-fips.us-gov-west-1.amazonaws.com", Some("us-gov-west-1")),
            ("vpce-0a1b-c2d.bedrock-runtime.us-east-1.vpce.amazonaws.com", Some("us-east-1")),
            ("bedrock-runtime.cn-north-1.amazonaws.com.cn", Some("cn-north-1")),
            ("bedrock-runtime.us-west-2.api.aws", Some("us-west-2")),
            ("bedrock-runtime.amazonaws.com", None),
            ("s3.eu-central-1.amazonaws.com", None),
            ("bedrock-runtime.eu-central-1.amazonaws.com.example", None),
            ("127.0.0.1", None),
        ] {
            assert_eq!(region_of(host), region, "{host}");
        }
        for region in ["us-east-1", "cn-north-1"] {
            let address = address(region);
            assert_eq!(region_of(address.strip_prefix("https://").unwrap()), Some(region));
        }
    }

    #[test]
    fn a_region_is_no_other_part_of_an_address() {
        for wrong in ["", "east", "us-east-1.evil.example/", "US-EAST-1", "us--1", "us-east-1#", "-"] {
            assert!(!is_region(wrong), "{wrong}");
        }
    }
}
