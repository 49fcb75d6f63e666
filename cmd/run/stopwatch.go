package run

import (
	"fmt"
	"strings"
	"time"
)

// stopwatch measures phases that follow one another.
type stopwatch struct {
	names []string
	begun []time.Time // of each phase, and the end of the last
}

// begin ends the phase before and begins the next.
func (s *stopwatch) begin(phase string) {
	s.names, s.begun = append(s.names, phase), append(s.begun, time.Now())
}

func (s *stopwatch) end() { s.begun = append(s.begun, time.Now()) }

// String returns the phases with their durations, as "engine 0.021 s, weights 0.010 s".
func (s *stopwatch) String() string {
	var parts []string
	for i := range len(s.begun) - 1 {
		parts = append(parts, fmt.Sprintf("%s %.3f s", s.names[i], s.begun[i+1].Sub(s.begun[i]).Seconds()))
	}
	return strings.Join(parts, ", ")
}
