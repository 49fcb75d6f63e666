package limits

// Limits of connections between machines.
const (
	// TunnelHello bounds a message before both ends have proven that they have the token.
	TunnelHello = 16 << 10
	// TunnelFrame bounds a frame after that.
	TunnelFrame = 64 << 20
	// TunnelHandshake bounds the time of a handshake.
	TunnelHandshake = 8
	// TunnelPending bounds the handshakes of a worker at a time. One more ends another one.
	TunnelPending = 256
	// TunnelPendingPerAddress bounds those of one address.
	TunnelPendingPerAddress = 128
	// Ranks bounds the ranks of a group that a worker joins.
	Ranks = 256
)

func init() {
	register(
		Limit{"TunnelHello", "message of a machine before it has proven its token", TunnelHello, Bytes,
			"worker/tunnel.TestBounds"},
		Limit{"TunnelFrame", "message between machines with the token", TunnelFrame, Bytes, "worker/tunnel.TestBounds"},
		Limit{"TunnelHandshake", "time that a connection to a worker has to prove its token", TunnelHandshake, Seconds,
			"worker/tunnel.TestSlowHandshake"},
		Limit{"TunnelPending", "connections to a worker that prove their tokens at a time", TunnelPending, Count,
			"worker/tunnel.TestManyHandshakes"},
		Limit{"TunnelPendingPerAddress", "those of one address", TunnelPendingPerAddress, Count,
			"worker/tunnel.TestManyHandshakes"},
		Limit{"Ranks", "ranks of a group that a worker joins", Ranks, Count, "worker.TestRefusedRanks"},
	)
}
