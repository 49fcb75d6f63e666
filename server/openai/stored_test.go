package openai

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/server"
	"github.com/ingotml/ingot/server/keys"
	"github.com/ingotml/ingot/server/servertest"
)

// store sends a request whose response is stored, and returns the response.
func (f *fixture) store(t *testing.T, more string) responseJSON {
	t.Helper()
	status, text := f.Ask(t, "POST", "/v1/responses", `{"model":"talk","store":true,`+more+`}`)
	r := servertest.Decode[responseJSON](t, text)
	if status != 200 || !r.Store {
		t.Fatalf("%d: %s", status, text)
	}
	return r
}

func TestStoredResponses(t *testing.T) {
	f := serve(t, nil)
	f.Says = toolOutput
	const tools = `,"tools":[{"type":"function","name":"f"}]`
	first := f.store(t, `"input":"Hi","instructions":"be brief"`+tools)
	_, body := f.Ask(t, "GET", "/v1/responses/"+first.ID, "")
	if got := servertest.Decode[responseJSON](t, body); got.ID != first.ID || got.Status != "completed" ||
		len(got.Output) != 3 || got.Usage == nil {
		t.Errorf("stored: %s", body)
	}
	second := f.store(t, `"previous_response_id":"`+first.ID+`","input":[{"type":"function_call_output","call_id":"`+
		first.Output[2].CallID+`","output":"2"}]`+tools)
	const turn = "It is so.\n\n" + `{"name": "f", "arguments": {"x": 1}}` // as the template is shown calls
	if got := f.Prompt(t); got != "system:brief|user:Hi|assistant:"+turn+"|tool:2|T=f|think=-" {
		t.Errorf("continued: %q", got)
	}
	if *second.Previous != first.ID {
		t.Errorf("it continues %s", *second.Previous)
	}
	f.Has(t, "POST", "/v1/responses", `{"model":"talk","previous_response_id":"`+second.ID+`","input":"And?",`+
		`"instructions":"be long"}`, 200, `"store":false`)
	if got := f.Prompt(t); !strings.HasPrefix(got, "system:be long|user:Hi|") ||
		!strings.HasSuffix(got, "|tool:2|assistant:"+turn+"|user:And?|think=-") {
		t.Errorf("continued twice: %q", got)
	}
	f.Has(t, "POST", "/v1/responses", `{"model":"talk","input":[{"type":"item_reference","id":"`+first.Output[1].ID+
		`"},{"role":"user","content":"x"}]}`, 200)
	if got := f.Prompt(t); got != "system:brief|assistant:It is so.|user:x|think=-" {
		t.Errorf("a reference: %q", got)
	}

	items := func(query string) itemListJSON {
		t.Helper()
		status, text := f.Ask(t, "GET", "/v1/responses/"+second.ID+"/input_items"+query, "")
		if status != 200 {
			t.Fatalf("%d: %s", status, text)
		}
		return servertest.Decode[itemListJSON](t, text)
	}
	all := items("?order=asc")
	if len(all.Data) != 5 || all.HasMore || *all.LastID != *items("").FirstID ||
		!strings.Contains(string(all.Data[0]), `"content":[{"type":"input_text","text":"Hi"}]`) {
		t.Errorf("items: %s", all.Data)
	}
	page := items("?limit=2&order=asc&after=" + *all.FirstID)
	if len(page.Data) != 2 || !page.HasMore || string(page.Data[0]) != string(all.Data[1]) {
		t.Errorf("a page: %s", page.Data)
	}
	for query, param := range map[string]string{"limit=0": "limit", "limit=101": "limit", "limit=x": "limit",
		"order=up": "order", "after=x": "after"} {
		f.Has(t, "GET", "/v1/responses/"+second.ID+"/input_items?"+query, "", 400, `"param":"`+param+`"`)
	}
	f.Has(t, "GET", "/v1/responses/"+second.ID+"?stream=true", "", 400, `"param":"stream"`)
	f.Has(t, "POST", "/v1/responses/"+second.ID+"/cancel", "", 400, "only a response in progress")

	f.Has(t, "DELETE", "/v1/responses/"+first.ID, "", 200, `"deleted":true`)
	for _, request := range []string{"GET /" + first.ID, "DELETE /" + first.ID, "POST /" + first.ID + "/cancel",
		"GET /" + first.ID + "/input_items", "GET /" + second.ID + "/input_items"} {
		method, path, _ := strings.Cut(request, " ")
		f.Has(t, method, "/v1/responses"+path, "", 404, `"store\": true`, `"type":"invalid_request_error"`)
	}
	f.Has(t, "POST", "/v1/responses", `{"model":"talk","previous_response_id":"`+second.ID+`","input":"x"}`, 400,
		`"param":"previous_response_id"`, `"code":"previous_response_not_found"`, "send the whole conversation")
}

// A response is stored only if the request says so.
func TestNotStored(t *testing.T) {
	f := serve(t, nil)
	for _, more := range []string{"", `,"store":false`, `,"store":null`} {
		_, text := f.Ask(t, "POST", "/v1/responses", `{"model":"talk","input":"Hi"`+more+`}`)
		r := servertest.Decode[responseJSON](t, text)
		if r.Store || r.ID == "" {
			t.Errorf("%s: %s", more, text)
		}
		f.Has(t, "GET", "/v1/responses/"+r.ID, "", 404)
	}
}

// follow reads a stream up to an event of a type.
func (f *fixture) follow(t *testing.T, body, until string) (first responseEvent, next func(string) responseEvent) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "POST", f.URL+"/v1/responses", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { response.Body.Close() })
	lines := bufio.NewScanner(response.Body)
	next = func(kind string) responseEvent {
		t.Helper()
		for lines.Scan() {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				if v := servertest.Decode[responseEvent](t, data); v.Type == kind {
					return v
				}
			}
		}
		t.Fatalf("the stream has no %s", kind)
		return responseEvent{}
	}
	return next(until), next
}

func TestCancelResponse(t *testing.T) {
	f := serve(t, nil)
	f.Wait = make(chan struct{})
	created, next := f.follow(t, `{"model":"talk","input":"Hi","store":true,"stream":true}`, "response.created")
	id := created.Response.ID
	next("response.output_text.delta")
	f.Has(t, "GET", "/v1/responses/"+id, "", 200, `"status":"in_progress"`)
	f.Has(t, "POST", "/v1/responses", `{"model":"talk","previous_response_id":"`+id+`","input":"x"}`, 400,
		`"param":"previous_response_id"`, "not complete")
	f.Has(t, "POST", "/v1/responses/"+id+"/cancel", "", 200, `"status":"cancelled"`, "Hello")
	if last := next("response.cancelled"); last.Response.Status != "cancelled" {
		t.Errorf("the end: %+v", last.Response)
	}
	f.Has(t, "POST", "/v1/responses/"+id+"/cancel", "", 200, `"status":"cancelled"`)
	f.Has(t, "GET", "/v1/responses/"+id, "", 200, `"status":"cancelled"`)
}

func TestBackground(t *testing.T) {
	f := serve(t, nil)
	f.Wait = make(chan struct{})
	status, text := f.Ask(t, "POST", "/v1/responses", `{"model":"talk","input":"Hi","background":true}`)
	r := servertest.Decode[responseJSON](t, text)
	if status != 200 || r.Status != "in_progress" || !r.Background || !r.Store {
		t.Fatalf("%d: %s", status, text)
	}
	f.Has(t, "GET", "/v1/responses/"+r.ID, "", 200, `"status":"in_progress"`)
	f.Wait <- struct{}{}
	f.Has(t, "GET", "/v1/responses/"+f.ends(t, r.ID), "", 200, `"status":"completed"`, "Hello world")

	_, text = f.Ask(t, "POST", "/v1/responses", `{"model":"talk","input":"Hi","background":true}`)
	r = servertest.Decode[responseJSON](t, text)
	f.Has(t, "POST", "/v1/responses/"+r.ID+"/cancel", "", 200, `"status":"cancelled"`)

	huge := `{"model":"talk","input":"Hi","metadata":"` + strings.Repeat("x", limits.StoredSize) + `",`
	if status, text := f.Ask(t, "POST", "/v1/responses", huge+`"background":true}`); status != 400 ||
		!strings.Contains(text, "larger than what the server stores") {
		t.Errorf("%d: %.200s", status, text)
	}

	f = serve(t, nil)
	f.Fail = servertest.ErrBurst
	_, text = f.Ask(t, "POST", "/v1/responses", `{"model":"talk","input":"Hi","background":true}`)
	r = servertest.Decode[responseJSON](t, text)
	f.Has(t, "GET", "/v1/responses/"+f.ends(t, r.ID), "", 200, `"status":"failed"`, "internal error")
}

// ends waits until a response is not in progress any more.
func (f *fixture) ends(t *testing.T, id string) string {
	t.Helper()
	for {
		if _, text := f.Ask(t, "GET", "/v1/responses/"+id, ""); !strings.Contains(text, `"status":"in_progress"`) {
			return id
		}
	}
}

func TestBackgroundLimit(t *testing.T) {
	f := serve(t, nil)
	f.Wait = make(chan struct{})
	const body = `{"model":"talk","input":"Hi","background":true}`
	var ids []string
	for range limits.BackgroundResponses {
		_, text := f.Ask(t, "POST", "/v1/responses", body)
		ids = append(ids, servertest.Decode[responseJSON](t, text).ID)
	}
	f.Has(t, "POST", "/v1/responses", body, 503, fmt.Sprint(limits.BackgroundResponses))
	for _, id := range ids {
		f.Has(t, "DELETE", "/v1/responses/"+id, "", 200)
	}
}

// Another key finds nothing of a response. Work in the background counts as a request of its key.
func TestStoredByKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(path, []byte("mine mine-mine-mine requests=1\nyours yours-yours-yours\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f := serve(t, func(o *server.Options) {
		list, err := keys.Open(path, t.Logf)
		if err != nil {
			t.Fatal(err)
		}
		o.Keys = list
	})
	f.Wait = make(chan struct{})
	ask := func(key, method, path, body string) (int, string) {
		t.Helper()
		return f.Ask(t, method, "/v1/responses"+path, body, "Authorization", "Bearer "+key)
	}
	_, text := ask("mine-mine-mine", "POST", "", `{"model":"talk","input":"Hi","background":true}`)
	id := servertest.Decode[responseJSON](t, text).ID
	if status, text := ask("mine-mine-mine", "POST", "", `{"model":"talk","input":"Hi"}`); status != 429 {
		t.Errorf("a second request of the key: %d: %s", status, text)
	}
	for _, request := range []string{"GET /" + id, "DELETE /" + id, "POST /" + id + "/cancel",
		"GET /" + id + "/input_items"} {
		method, path, _ := strings.Cut(request, " ")
		if status, text := ask("yours-yours-yours", method, path, ""); status != 404 {
			t.Errorf("%s with another key: %d: %s", request, status, text)
		}
	}
	for _, input := range []string{`"previous_response_id":"` + id + `","input":"x"`, `"input":[{"id":"` + id + `"}]`} {
		status, text := ask("yours-yours-yours", "POST", "", `{"model":"talk",`+input+`}`)
		if status != 404 && status != 400 {
			t.Errorf("%s with another key: %d: %s", input, status, text)
		}
	}
	f.Wait <- struct{}{}
	for status := 0; status != 200; { // until the work has ended
		status, _ = ask("mine-mine-mine", "POST", "/input_tokens", `{"model":"talk","input":"x"}`)
	}
	status, text := ask("mine-mine-mine", "GET", "/"+id, "")
	if status != 200 || !strings.Contains(text, `"status":"completed"`) {
		t.Errorf("%d: %s", status, text)
	}
}
