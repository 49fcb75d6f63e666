package disk

import "os"

// syncer is a file, or what a test has in its place.
type syncer interface{ Sync() error }

// EnvNoSync is the environment variable that turns syncing off, if it is not empty.
const EnvNoSync = "INGOT_NO_SYNC"

// Sync makes the content of a file durable. It has no effect if INGOT_NO_SYNC is set: for machines that are thrown away
// if they lose power, such as those of CI. Files stay whole when a process is killed, with or without it.
func Sync(f syncer) error {
	if unsynced() {
		return nil
	}
	return f.Sync()
}

func unsynced() bool { return os.Getenv(EnvNoSync) != "" }
