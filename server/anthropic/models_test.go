package anthropic

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/server/servertest"
)

// The list of models has Anthropic's form, and so do its errors.
func TestModels(t *testing.T) {
	f := serve(t, nil)
	ask := func(path string, headers ...string) (int, string) { return f.Ask(t, "GET", path, "", headers...) }
	const version = "anthropic-version"
	status, text := ask("/v1/models?limit=1000", version, "2023-06-01")
	list := servertest.Decode[modelList](t, text)
	if status != 200 || len(list.Data) != 2 || list.HasMore || *list.FirstID != list.Data[0].ID ||
		*list.LastID != list.Data[1].ID {
		t.Fatalf("%d: %s", status, text)
	}
	m := list.Data[0]
	if m.Type != "model" || m.DisplayName != m.ID || time.Since(m.CreatedAt) > time.Hour || *m.MaxInput < 100 ||
		!m.Capabilities.PDFInput.Supported || m.Capabilities.ImageInput.Supported || m.Lifecycle != "active" {
		t.Errorf("%s", text)
	}
	status, text = ask("/v1/models/talk", version, "2023-06-01")
	if m := servertest.Decode[modelInfo](t, text); status != 200 || m.ID != "talk" || m.DisplayName != "talk:latest" {
		t.Errorf("%d: %s", status, text)
	}
	for path, want := range map[string]string{
		"/v1/models/none":          `{"type":"error","error":{"type":"not_found_error","message":`,
		"/v1/models?limit=0":       `{"type":"error","error":{"type":"invalid_request_error","message":"limit: `,
		"/v1/models?after_id=none": `"message":"after_id: no model is named \"none\"`,
	} {
		if _, text := ask(path, version, "2023-06-01"); !strings.Contains(text, want) {
			t.Errorf("%s: %s", path, text)
		}
	}
}

func TestPages(t *testing.T) {
	var list []modelInfo
	for _, id := range strings.Split("abcdefghijklmnopqrstuvwxyz", "") {
		list = append(list, modelInfo{ID: id})
	}
	for query, want := range map[string]string{
		"":                       "a-t more",
		"limit=3":                "a-c more",
		"limit=1000":             "a-z",
		"limit=3&after_id=c":     "d-f more",
		"limit=3&after_id=x":     "y-z",
		"after_id=z":             "none",
		"limit=3&before_id=f":    "c-e more",
		"limit=3&before_id=c":    "a-b",
		"before_id=a":            "none",
		"lifecycle=active":       "a-t more",
		"lifecycle[]=retired":    "none",
		"lifecycle=deprecated":   "none",
		"limit=1001":             "error",
		"limit=x":                "error",
		"after_id=a&before_id=c": "error",
		"before_id=none":         "error",
	} {
		q, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		page, err := pageOf(list, q)
		got := "none"
		switch {
		case err != nil:
			got = "error"
		case page.FirstID != nil:
			got = *page.FirstID + "-" + *page.LastID
		}
		if page.HasMore {
			got += " more"
		}
		if got != want {
			t.Errorf("%q: %s, want %s", query, got, want)
		}
	}
}

// What a model can do follows from its image.
func TestCapabilities(t *testing.T) {
	n, err := manifest.ParseName("m")
	if err != nil {
		t.Fatal(err)
	}
	c := manifest.Config{ContextLength: 99, Capabilities: []string{manifest.CapCompletion, manifest.CapVision,
		manifest.CapThinking}}
	m, ok := newModelInfo(n, c, time.Unix(1, 5))
	can := m.Capabilities
	if !ok || *m.MaxInput != 99 || !can.ImageInput.Supported || !can.Thinking.Types.Adaptive.Supported ||
		!can.Effort.Low.Supported || !m.CreatedAt.Equal(time.Unix(1, 0)) {
		t.Errorf("%+v", m)
	}
	if _, ok := newModelInfo(n, manifest.Config{Capabilities: []string{manifest.CapEmbedding}}, time.Time{}); ok {
		t.Error("a model that only embeds is listed")
	}
}
