package verdict

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestOf names, for each step, what a caller must not get wrong.
func TestOf(t *testing.T) {
	every := []Step{Ping, Token, HeadManifest, GetManifest, PutManifest, HeadBlob, GetBlob, OpenUpload, FirstChunk,
		NextChunk, AskUpload, PutBlob, Storage, Referrers, TagReferrers, ListTags, Delete, HubList, HubFile, SignedFile}
	for _, step := range every {
		for _, status := range []int{408, 425, 429, 499, 500, 502, 503, 504, 507, 509, 520, 521, 522, 523, 524, 525, 526, 527,
			529, 530} {
			if got := Of(step, status); got != Retry {
				t.Errorf("%s, %d: %s, want retry", step, status, got)
			}
		}
		if got := Of(step, 505); got != GiveUp {
			t.Errorf("%s, 505: %s, want give up", step, got)
		}
	}
	for _, c := range []struct {
		step     Step
		statuses []int
		want     Verdict
	}{
		{Ping, []int{401, 403}, Authorize},
		{Ping, []int{404, 501, 511, 301}, GiveUp},
		{Token, []int{400, 401, 403}, Authorize},
		{Token, []int{404, 405}, FallBack},
		{Token, []int{301, 501}, GiveUp},
		{HeadManifest, []int{404}, Absent},
		{HeadManifest, []int{400, 401, 403, 405, 406, 415, 422, 501}, FallBack},
		{HeadBlob, []int{404}, Absent},
		{HeadBlob, []int{400, 401, 403, 405, 410, 501}, FallBack},
		{GetManifest, []int{404}, Absent},
		{GetManifest, []int{401, 403}, Authorize},
		{GetManifest, []int{400, 406, 410, 501}, GiveUp},
		{GetBlob, []int{404}, Absent},
		{Storage, []int{400, 401, 403, 410}, FallBack},
		{Storage, []int{404}, Absent},
		{Storage, []int{405, 416, 501}, GiveUp},
		{TagReferrers, []int{409, 412}, Look},
		{TagReferrers, []int{400, 404, 405, 413}, GiveUp},
		{TagReferrers, []int{401, 403}, Authorize},
		{PutManifest, []int{409, 412}, Look},
		{PutManifest, []int{400, 404, 413, 415, 501}, GiveUp},
		{PutManifest, []int{401, 403}, Authorize},
		{Mount, []int{200, 400, 401, 403, 404, 405, 416, 500, 501, 502, 503, 522}, FallBack},
		{Mount, []int{408, 425, 429}, Retry},
		{OpenUpload, []int{401, 403}, Authorize},
		{OpenUpload, []int{400, 404, 405, 501}, GiveUp},
		{FirstChunk, []int{200, 201, 400, 403, 404, 405, 411, 416, 422, 501}, FallBack},
		{FirstChunk, []int{413}, Smaller},
		{FirstChunk, []int{401}, Authorize},
		{NextChunk, []int{404, 410}, Restart},
		{NextChunk, []int{400, 416}, Ask},
		{NextChunk, []int{413}, Smaller},
		{NextChunk, []int{405, 501}, FallBack},
		{NextChunk, []int{401, 403}, Authorize},
		{AskUpload, []int{400, 403, 404, 405, 410, 416, 501}, Restart},
		{AskUpload, []int{401}, Authorize},
		{PutBlob, []int{200, 400, 404, 409, 410, 422}, Look},
		{PutBlob, []int{416}, Ask},
		{PutBlob, []int{413}, Smaller},
		{PutBlob, []int{401, 403}, Authorize},
		{Referrers, []int{400, 403, 404, 405, 406, 415, 422, 501}, FallBack},
		{Referrers, []int{401}, Authorize},
		{ListTags, []int{404}, Absent},
		{ListTags, []int{405, 501}, GiveUp},
		{Delete, []int{404, 410}, Absent},
		{Delete, []int{400, 405, 415, 501}, FallBack},
		{Delete, []int{409, 412, 422, 423}, GiveUp},
		{HubList, []int{400, 404, 405, 410, 501}, FallBack},
		{HubList, []int{401, 403}, Authorize},
		{HubFile, []int{404}, Absent},
		{HubFile, []int{401, 403}, Authorize},
		{SignedFile, []int{400, 401, 403, 404, 410}, FallBack},
		{SignedFile, []int{405, 416, 501}, GiveUp},
	} {
		for _, status := range c.statuses {
			if got := Of(c.step, status); got != c.want {
				t.Errorf("%s, %d: %s, want %s", c.step, status, got, c.want)
			}
		}
	}
}

// TestRowsReachable: each row decides the statuses that it names, so none is hidden by an earlier one.
func TestRowsReachable(t *testing.T) {
	for i, r := range Rows() {
		step := r.Step
		if step == "" {
			step = Ping
		}
		if r.From > r.To || Of(step, r.From) != r.Verdict || Of(step, r.To) != r.Verdict {
			t.Errorf("row %d, %+v: %s and %s", i, r, Of(step, r.From), Of(step, r.To))
		}
	}
}

var update = flag.Bool("update", false, "rewrite the table in docs/registries.md")

const (
	page  = "../../docs/registries.md"
	begin = "<!-- statuses: written by `go test ./registry/verdict -update` -->\n"
	end   = "<!-- end of statuses -->\n"
)

// TestPage: docs/registries.md has the table.
func TestPage(t *testing.T) {
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(b), begin)
	was, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s has no place for the table", page)
	}
	want := table()
	if *update {
		if err := os.WriteFile(page, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if was != want {
		t.Errorf("the table in %s is stale: go test ./registry/verdict -update", page)
	}
}

func table() string {
	var b strings.Builder
	b.WriteString("| Step | Status | What ingot does | Why |\n|---|---|---|---|\n")
	for _, r := range Rows() {
		step, status := string(r.Step), fmt.Sprint(r.From)
		if step == "" {
			step = "every step"
		}
		if r.To != r.From {
			status += fmt.Sprintf(" to %d", r.To)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", step, status, r.Verdict, r.Why)
	}
	return b.String()
}
