//! How messages are read and written: as prost does it, but that a message which cannot be read is the client's fault
//! and not the server's.

use std::marker::PhantomData;

use prost::Message;
use tonic::Status;
use tonic::codec::{DecodeBuf, Decoder};
use tonic_prost::ProstEncoder;

/// The codec of all calls.
#[derive(Clone, Copy, Debug)]
pub struct Codec<E, D>(PhantomData<(E, D)>);

impl<E, D> Default for Codec<E, D> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<E, D> tonic::codec::Codec for Codec<E, D>
where
    E: Message + Send + 'static,
    D: Message + Default + Send + 'static,
{
    type Encode = E;
    type Decode = D;
    type Encoder = ProstEncoder<E>;
    type Decoder = Reader<D>;

    fn encoder(&mut self) -> Self::Encoder {
        ProstEncoder::default()
    }

    fn decoder(&mut self) -> Self::Decoder {
        Reader(PhantomData)
    }
}

/// Reads messages.
#[derive(Clone, Copy, Debug)]
pub struct Reader<D>(PhantomData<D>);

impl<D: Message + Default> Decoder for Reader<D> {
    type Item = D;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<D>, Status> {
        let message = D::decode(buffer);
        message
            .map(Some)
            .map_err(|error| Status::invalid_argument(format!("the message of the request cannot be read: {error}")))
    }
}
