package interop

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// webuiTool is a tool of Open WebUI's own kind.
const webuiTool = `class Tools:
    def search(self, query: str, limit: int) -> str:
        """
        Search the notes.

        :param query: what to search for
        :param limit: how many notes
        """
        return f'{limit} notes on {query}: the tide is out'
`

// TestOpenWebUI: Open WebUI lists the models, chats, calls a tool of its own and titles the chat, over the Ollama
// API and over OpenAI's.
func TestOpenWebUI(t *testing.T) {
	if testing.Short() {
		t.Skip("Open WebUI is installed by setup.sh --full")
	}
	u := newUser(t)
	a := newAgent(t, u, u.serve())
	a.model(u, "talk", scripted(t, hermesCalls, []step{
		{text: "I search.", calls: []call{{"search", args{"query": "greeting", "limit": 3}}}},
		{text: finished},
	}, `{"title": "The tide"}`), hermesCalls)
	w := startWebUI(a)

	var models struct{ Data []struct{ ID string } }
	w.call("GET", "/api/models", nil, &models)
	var ids []string
	for _, m := range models.Data {
		ids = append(ids, m.ID)
	}
	w.call("GET", "/ollama/api/version", nil, nil)
	w.call("POST", "/api/v1/tools/create", args{"id": "notes", "name": "Notes", "content": webuiTool, "meta": args{}}, nil)
	for _, c := range []struct{ model, path string }{
		{"talk:latest", "/api/chat"}, {"openai.talk:latest", "/v1/chat/completions"},
	} {
		t.Run(c.model, func(t *testing.T) {
			if !slices.Contains(ids, c.model) {
				t.Fatalf("the models are %q", ids)
			}
			var chat struct {
				Title string
				Chat  struct {
					History struct {
						Messages map[string]struct {
							Done            bool
							Content, Output any
						}
					}
				}
			}
			id := w.chat(c.model)
			for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(300 * time.Millisecond) {
				w.call("GET", "/api/v1/chats/"+id, nil, &chat)
				if chat.Title == "The tide" && chat.Chat.History.Messages["answer"].Done {
					break
				}
				if time.Now().After(deadline) {
					t.Fatalf("the chat is %+v\n%s", chat, a.server)
				}
			}
			response := jsonText(chat.Chat.History.Messages["answer"])
			for _, want := range []string{"I search.", "the tide is out", finished} {
				if !strings.Contains(response, want) {
					t.Errorf("the response lacks %q: %s", want, response)
				}
			}
			a.wantRequests(c.path, 2, noteFound)
			a.server.forget()
		})
	}
	a.wantNoOutside()
}

// webui is a running Open WebUI.
type webui struct {
	*agent
	url, token string
}

func startWebUI(a *agent) *webui {
	t := a.t
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(listener.Addr().String()) // cannot fail: it is the address of a listener
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), tool(t, filepath.Join("agents", "open-webui", "bin", "open-webui")),
		"serve", "--host", "127.0.0.1", "--port", port)
	c.Dir = a.scratch
	c.Env = append(a.env(), "DATA_DIR="+a.home, "WEBUI_AUTH=False", "OLLAMA_BASE_URL="+a.server.url,
		"OPENAI_API_BASE_URL="+a.server.url+"/v1", "OPENAI_API_KEY=none", "OFFLINE_MODE=True", "HF_HUB_OFFLINE=1",
		"RAG_EMBEDDING_ENGINE=ollama", "RAG_EMBEDDING_MODEL=talk", "ANONYMIZED_TELEMETRY=False", "DO_NOT_TRACK=true",
		"SCARF_NO_ANALYTICS=true", "ENABLE_VERSION_UPDATE_CHECK=False")
	var log bytes.Buffer
	c.Stdout, c.Stderr = &log, &log
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- c.Wait() }()
	t.Cleanup(func() {
		_ = c.Process.Kill()
		<-done
		if t.Failed() {
			t.Logf("Open WebUI: %s", log.String()[max(0, log.Len()-8000):])
		}
	})
	w := &webui{agent: a, url: "http://127.0.0.1:" + port}
	for deadline := time.Now().Add(5 * time.Minute); ; time.Sleep(300 * time.Millisecond) {
		response, err := http.Get(w.url + "/health")
		if err == nil {
			_ = response.Body.Close()
			if response.StatusCode == http.StatusOK {
				break
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("Open WebUI does not start: %v", err)
		}
	}
	var session struct{ Token string }
	w.call("POST", "/api/v1/auths/signin", args{"email": "", "password": ""}, &session)
	w.token = session.Token
	// Without a prefix, one of two models with the same name is hidden.
	w.call("POST", "/openai/config/update", args{"ENABLE_OPENAI_API": true,
		"OPENAI_API_BASE_URLS": []string{a.server.url + "/v1"}, "OPENAI_API_KEYS": []string{"none"},
		"OPENAI_API_CONFIGS": args{"0": args{"enable": true, "prefix_id": "openai", "connection_type": "external"}}}, nil)
	return w
}

// chat starts a chat as Open WebUI's page does, and returns its id.
func (w *webui) chat(model string) string {
	w.t.Helper()
	var chat struct {
		ID string `json:"chat_id"`
	}
	w.call("POST", "/api/chat/completions", args{"model": model, "stream": true, "parent_id": nil, "session_id": "page",
		"id": "answer", "user_message": args{"id": "question", "role": "user", "content": task},
		"messages": []args{{"role": "user", "content": task}}, "tool_ids": []string{"notes"},
		"params": args{"function_calling": "native"}, "background_tasks": args{"title_generation": true}}, &chat)
	return chat.ID
}

// call sends a request, which must succeed, and decodes the response.
func (w *webui) call(method, path string, body, into any) {
	w.t.Helper()
	request, err := http.NewRequestWithContext(w.t.Context(), method, w.url+path, strings.NewReader(jsonText(body)))
	if err != nil {
		w.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+w.token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		w.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %d", response.StatusCode)
	}
	if err == nil && into != nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		w.t.Fatalf("%s %s: %v: %s\n%s", method, path, err, text, w.server)
	}
}
