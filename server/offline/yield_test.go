package offline

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ingotml/ingot/server"
)

// A client's request for a model that has no room beside the batch's goes first: the batch lets its model become idle.
func TestYield(t *testing.T) {
	f := serve(t, func(o *server.Options) { o.Models = 1 })
	f.Wait = make(chan struct{})
	var in strings.Builder
	for i := range 60 {
		in.WriteString(completion(fmt.Sprint("r", i)))
	}
	id := f.create(t, f.upload(t, in.String()), "/v1/completions").ID
	f.Wait <- struct{}{} // the batch runs
	served := make(chan int)
	go func() {
		status, _ := f.ask(t, "POST", "/v1/completions", `{"model":"talk","prompt":"x"}`)
		served <- status
	}()
	n := 1
	for status := 0; status == 0; {
		select {
		case f.Wait <- struct{}{}:
			n++
			time.Sleep(2 * time.Millisecond)
		case status = <-served:
			if b := f.batch(t, id); status != 200 || b.Status != inProgress || n > 50 {
				t.Errorf("status %d after %d of the batch's requests: %+v", status, n, b)
			}
		}
	}
	close(f.Wait)
	if b := f.wait(t, id, completed); b.Counts.Completed != 60 {
		t.Errorf("%+v", b)
	}
}
