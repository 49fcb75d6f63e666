// Package tunnel connects machines that share a token. A connection is TLS 1.3. Both ends prove to each other that they
// have the token before anything else is read.
//
// Contract:
//   - The listener's certificate is made when it starts, is signed by itself and proves nothing. Proofs do: each end
//     sends HMAC-SHA256 under the token over its role and the connection's channel binding "tls-exporter" (RFC 9266,
//     which is keying material of RFC 5705). A relay has two TLS connections with different bindings, so a proof that
//     it passes on is wrong. The roles keep a proof from being returned to its sender.
//   - The dialer proves itself first. The listener sends its proof only to those who have the token.
//   - Both ends then exchange the versions of the program and the engine. Different ones are refused, with both named.
//   - TLS protects every later byte: a changed, dropped, repeated or reordered record ends the connection.
//   - A message before the proofs has at most [limits.TunnelHello] bytes, a frame at most [limits.TunnelFrame]. Each
//     handshake ends within [limits.TunnelHandshake] seconds, and at most [limits.TunnelPending] run at a time. One
//     more ends another one, of the address with most, rather one without a complete first message: see package conns.
//     A dialer whose connection ends so tries again.
//
// An attacker in the path who poses as the listener gets the dialer's proof and can try tokens against it without a
// connection. So [NewToken] wants tokens that cannot be guessed.
//
// A [Conn] carries frames ([Conn.WriteFrame], [Conn.ReadFrame]) or bytes ([Pipe]). Each purpose has a connection of
// its own, so a slow one does not delay another.
package tunnel
