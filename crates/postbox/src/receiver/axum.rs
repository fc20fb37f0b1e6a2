//! [`Incoming`] as an extractor and [`Answer`] as a response of axum 0.8.

use std::sync::Arc;

use axum_core::body::Body;
use axum_core::extract::{FromRef, FromRequest, Request};
use axum_core::response::{IntoResponse, Response};
use http::StatusCode;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};

use super::{Answer, Incoming, Receiver};

/// Takes the [`Receiver`] out of the application's state, reads the whole body and verifies it. Must be the last
/// argument of a handler, as everything that reads the body.
impl<S> FromRequest<S> for Incoming
where
    S: Send + Sync,
    Arc<Receiver>: FromRef<S>,
{
    type Rejection = Answer;

    async fn from_request(request: Request, state: &S) -> Result<Self, Answer> {
        let receiver = Arc::<Receiver>::from_ref(state);
        let (head, body) = request.into_parts();
        let body = match Limited::new(body, receiver.body_limit()).collect().await {
            Ok(body) => body.to_bytes(),
            Err(error) if error.is::<LengthLimitError>() => return Err(Answer::TooLarge),
            Err(_) => return Err(Answer::Malformed("the body broke off".into())),
        };
        let header = |name| head.headers.get(name).and_then(|value: &http::HeaderValue| value.to_str().ok());
        receiver.open(header, &body)
    }
}

impl IntoResponse for Answer {
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::from(self.body().to_owned()));
        *response.status_mut() =
            StatusCode::from_u16(self.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        response
    }
}
