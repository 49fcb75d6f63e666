package limits

// Limits of the lines in a log that clients cause.
const (
	// LogLines bounds the lines of one kind in an interval.
	LogLines = 20
	// LogInterval is that interval.
	LogInterval = 60
	// LogLine bounds a line.
	LogLine = 16 << 10
)

func init() {
	const test = "internal/limits/loglimit.TestBounds"
	register(
		Limit{"LogLines", "lines of one kind that a server or a worker logs in an interval", LogLines, Count, test},
		Limit{"LogInterval", "that interval", LogInterval, Seconds, test},
		Limit{"LogLine", "line of their logs", LogLine, Bytes, test},
	)
}
