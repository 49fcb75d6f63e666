package cmd_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestHostileClients checks that a server with hundreds of slow connections and too many large bodies keeps responding,
// with bounded memory.
func TestHostileClients(t *testing.T) {
	s := startServer(t, nil)
	before := peak(t, s.Process.Pid)
	dial := func() net.Conn {
		c, err := net.Dial("tcp", s.addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		_ = c.SetDeadline(time.Now().Add(time.Minute))
		return c
	}
	const post = "POST /api/chat HTTP/1.1\r\nHost: localhost\r\n"
	for i := range 400 {
		c := dial()
		switch i % 4 {
		case 0:
			fmt.Fprint(c, post+"X-A: ", strings.Repeat("b", 50_000)) // an incomplete header
		case 1:
			fmt.Fprint(c, post+"Content-Length: 134217728\r\n\r\n{", strings.Repeat(" ", 60_000)) // an incomplete body
		case 2:
			_ = c.(*net.TCPConn).CloseWrite()
		}
	}
	// Many large bodies at once. Some of them decode to far more memory than their size.
	var wg sync.WaitGroup
	bomb := `{"model":"demo","messages":[` + strings.Repeat("{},", 4<<20) + `{}]}`
	large := `{"model":"none","prompt":"` + strings.Repeat("x", 12<<20) + `"}`
	deep := strings.Repeat("[", 12<<20)
	for i := range 12 {
		body := []string{bomb, large, deep}[i%3]
		wg.Go(func() {
			c := dial()
			go func() {
				fmt.Fprintf(c, "%sContent-Length: %d\r\nConnection: close\r\n\r\n", strings.Replace(post, "/chat", "/generate", 1),
					len(body))
				_, _ = io.WriteString(c, body)
			}()
			response, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil {
				return // the server closed the connection
			}
			defer response.Body.Close()
			if code := response.StatusCode; code != 503 && (code < 400 || code > 499) {
				t.Errorf("status %d", code)
			}
		})
	}
	if last := s.whole(t, "/api/generate", fmt.Sprintf(story, 5, "~")); last["done"] != true {
		t.Errorf("a request under load: %v", last)
	}
	wg.Wait()
	after := peak(t, s.Process.Pid)
	t.Logf("server memory: peak %d MB, %d MB before", after>>20, before>>20)
	if after > before+1<<30 {
		t.Errorf("server memory: %d bytes, %d before", after, before)
	}
	if last := s.whole(t, "/api/generate", fmt.Sprintf(story, 5, "~")); last["done"] != true {
		t.Errorf("afterwards: %v", last)
	}
	if !running(s.Process.Pid) {
		t.Fatalf("the server has exited: %s", s.errs)
	}
}
