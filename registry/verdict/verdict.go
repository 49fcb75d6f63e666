// Package verdict decides what the status of a registry's or hub's response means for the step that it ends.
//
// Contract:
//
//   - One table, [Rows], has every decision. Callers ask [Of] and act; they compare no statuses of failures.
//   - A step that has another way ([FallBack]) has one: after that, its failure is the failure of the step.
//   - The package is pure and imports nothing of the project.
package verdict

// Step is a request of a transfer.
type Step string

// The steps. Those of a registry are of https://github.com/opencontainers/distribution-spec/blob/v1.1.1/spec.md.
const (
	Ping         Step = "ping"          // GET /v2/
	Token        Step = "token"         // of a token server
	HeadManifest Step = "head manifest" // optional: a PUT or GET follows
	GetManifest  Step = "get manifest"
	PutManifest  Step = "put manifest"
	HeadBlob     Step = "head blob" // optional: an upload or GET follows
	GetBlob      Step = "get blob"
	Mount        Step = "mount" // optional: an upload follows
	OpenUpload   Step = "open upload"
	FirstChunk   Step = "first chunk" // until the registry has kept a chunk of this session
	NextChunk    Step = "next chunk"
	AskUpload    Step = "ask upload"    // GET of a session, for its offset
	PutBlob      Step = "put blob"      // the PUT that ends an upload
	Storage      Step = "storage"       // GET of the address that a registry redirected to
	Referrers    Step = "referrers"     // the API; the referrers tag is its other way
	TagReferrers Step = "tag referrers" // PUT of the index of the referrers tag
	ListTags     Step = "list tags"
	Delete       Step = "delete"      // by tag; deletion of the manifest is its other way
	HubList      Step = "hub list"    // /tree/; the siblings of the revision are its other way
	HubFile      Step = "hub file"    // /resolve/
	SignedFile   Step = "signed file" // the address that a hub redirected to
)

// Verdict is what to do after a failed response.
type Verdict string

// The verdicts.
const (
	GiveUp    Verdict = "give up"
	Retry     Verdict = "retry"     // send the same again, later
	FallBack  Verdict = "fall back" // take the step's other way
	Authorize Verdict = "authorize" // get other credentials; without any, give up and say how to log in
	Absent    Verdict = "absent"    // what was asked for is not there
	Smaller   Verdict = "smaller"   // send less at a time
	Look      Verdict = "look"      // ask what the registry has; if it is not what was sent, begin again after a delay
	Ask       Verdict = "ask"       // ask for the session's offset
	Restart   Verdict = "restart"   // the session is lost: begin the blob again
)

// Row is one decision: Verdict for each Status from From to To of a step.
type Row struct {
	Step     Step // "": every step
	From, To int
	Verdict  Verdict
	Why      string
}

// Of returns the verdict for a status that the step does not expect: that of the first row that matches, else
// [GiveUp].
func Of(step Step, status int) Verdict {
	for _, r := range rows {
		if (r.Step == step || r.Step == "") && r.From <= status && status <= r.To {
			return r.Verdict
		}
	}
	return GiveUp
}

// Rows returns the table, in the order in which it is searched.
func Rows() []Row { return append([]Row(nil), rows...) }
