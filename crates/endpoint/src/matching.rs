//! Token ↔ exchange (RFC 7252 §5.3).
//!
//! A token is a keyed 64-bit permutation of (slot, generation), written as 8 bytes. Values never
//! repeat, cannot be guessed without the key, and lead to their slot without a table.

use coapway_message::ExchangeId;
use speck_cipher::Speck64_128;
use speck_cipher::cipher::{BlockCipherDecrypt, BlockCipherEncrypt, KeyInit};

/// The keyed permutation of one endpoint.
pub struct Tokens {
    permutation: Speck64_128,
}

impl std::fmt::Debug for Tokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tokens")
    }
}

impl Tokens {
    /// With this key, which must be secret and random in production.
    pub fn new(key: [u8; 16]) -> Self {
        Self { permutation: Speck64_128::new(&key.into()) }
    }

    /// The token of an exchange.
    pub fn token(&self, exchange: ExchangeId) -> [u8; 8] {
        let value = u64::from(exchange.generation) << 32 | u64::from(exchange.slot);
        let mut block = value.to_be_bytes().into();
        self.permutation.encrypt_block(&mut block);
        block.into()
    }

    /// The exchange a token belongs to, if it has the length of ours. It may be one that never was.
    pub fn exchange(&self, token: &[u8]) -> Option<ExchangeId> {
        let token: [u8; 8] = token.try_into().ok()?;
        let mut block = token.into();
        self.permutation.decrypt_block(&mut block);
        let value = u64::from_be_bytes(block.into());
        Some(ExchangeId { slot: value as u32, generation: (value >> 32) as u32 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_lead_back_to_their_exchange() {
        let tokens = Tokens::new(*b"0123456789abcdef");
        for slot in 0..100 {
            for generation in 0..10 {
                let exchange = ExchangeId { slot, generation };
                assert_eq!(tokens.exchange(&tokens.token(exchange)), Some(exchange));
            }
        }
        assert_eq!(tokens.exchange(b"short"), None);
        assert_eq!(tokens.exchange(b"too long a token"), None);
    }

    #[test]
    fn neighbours_look_nothing_alike() {
        let tokens = Tokens::new([7; 16]);
        let mut ones = 0;
        for slot in 0..1000 {
            let a = u64::from_be_bytes(tokens.token(ExchangeId { slot, generation: 0 }));
            let b = u64::from_be_bytes(tokens.token(ExchangeId { slot, generation: 1 }));
            ones += (a ^ b).count_ones();
        }
        assert!((30_000..34_000).contains(&ones), "{ones} of 64 000 bits differ");
    }
}
