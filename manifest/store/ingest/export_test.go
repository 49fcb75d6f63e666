package ingest

// The parts of the package that its external tests use.
const (
	IngestJournal  = ingestJournal
	IngestPrefix   = ingestPrefix
	PartLockSuffix = partLockSuffix
	PartSuffix     = partSuffix
	RangesSuffix   = rangesSuffix
	SendingPrefix  = sendingPrefix
	SessionPrefix  = sessionPrefix
	SessionState   = sessionState
	UsedAge        = usedAge
)

// Dir returns the staging folder.
func (in *Staging) Dir() string { return in.dir }

// Path returns the path of a file in the staging folder.
func (in *Staging) Path(name string) string { return in.path(name) }

// Path returns the path of a file in the session's folder.
func (x *Session) Path(name string) string { return x.path(name) }
