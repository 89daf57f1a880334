//! The media types of bodies and answers. Those of patches are with the patches.

/// In which everything is read and answered.
pub const JSON: &str = "application/json";
/// In which people write objects.
pub const YAML: &str = "application/yaml";
/// The form of built-in kinds that some clients send.
pub const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
/// All of discovery in one document.
pub const AGGREGATED_DISCOVERY: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// In which objects of all kinds are read and answered.
pub const OBJECT_TYPES: [&str; 2] = [JSON, YAML];

/// A media type without its parameters, such as a charset.
pub fn essence(media_type: &str) -> &str {
    media_type.split(';').next().unwrap_or_default().trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_no_part_of_what_a_body_is() {
        for text in [JSON, "application/json;charset=utf-8", " application/json ; a=b;c=d"] {
            assert_eq!(essence(text), JSON, "{text}");
        }
        assert_eq!(essence(AGGREGATED_DISCOVERY), JSON);
        assert_eq!((essence(""), essence(";a=b")), ("", ""));
    }
}
