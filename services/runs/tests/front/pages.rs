//! Pages of browsers: without keys none may ask but those that the configuration names.

use kindex_runs::front::Cors;

use crate::server::Server;

#[tokio::test]
async fn a_foreign_host_or_origin_is_refused_without_keys() {
    let server = Server::start().await;
    for (name, value, expected) in [
        ("host", "evil.example.com:3002", 403),
        ("origin", "https://evil.example.com", 403),
        ("sec-fetch-site", "cross-site", 403),
        ("accept", "*/*", 200),
    ] {
        let answer = server
            .ask(server.request("GET", "/health").header(name, value), "")
            .await;
        assert_eq!(answer.status, expected, "{name}");
        assert!(!answer.headers.contains_key("access-control-allow-origin"));
    }
}

#[tokio::test]
async fn pages_of_configured_origins_may_ask() {
    let server = Server::with(|options| options.cors = Cors::new(["https://runs.example.com".to_owned()])).await;
    let ask = |method, origin| {
        let request = server.request(method, "/api/v1/runs").header("origin", origin);
        server.ask(request.header("access-control-request-method", "POST"), "")
    };
    let preflight = ask("OPTIONS", "https://runs.example.com").await;
    assert_eq!(preflight.status, 204);
    assert_eq!(
        preflight.headers["access-control-allow-origin"],
        "https://runs.example.com"
    );
    let foreign = ask("OPTIONS", "https://evil.example.com").await;
    assert_eq!(foreign.status, 403);
    let request = server
        .request("GET", "/api/v1/runs?project=demo")
        .header("origin", "https://runs.example.com");
    let answer = server.ask(request, "").await;
    assert_eq!(answer.status, 200);
    assert_eq!(
        answer.headers["access-control-allow-origin"],
        "https://runs.example.com"
    );
}
