package cmd

import "time"

// meter knows how fast bytes move now: over the last few seconds, not over the whole run, whose start says nothing about what
// is left.
type meter struct {
	marks []mark // the oldest first, at least markEvery apart
	total int64
}

type mark struct {
	at    time.Time
	total int64
}

const (
	markEvery = 250 * time.Millisecond
	markFor   = 8 * time.Second
)

func newMeter(now time.Time) meter { return meter{marks: []mark{{now, 0}}} }

// add counts bytes that have moved.
func (m *meter) add(now time.Time, bytes int64) {
	m.total += bytes
	if now.Sub(m.marks[len(m.marks)-1].at) >= markEvery {
		m.marks = append(m.marks, mark{now, m.total})
	}
}

// rate is in bytes per second; 0 as long as too little is known.
func (m *meter) rate(now time.Time) float64 {
	for len(m.marks) > 1 && now.Sub(m.marks[1].at) >= markFor {
		m.marks = m.marks[1:]
	}
	if now.Sub(m.marks[len(m.marks)-1].at) >= markFor {
		return 0
	}
	since := min(now.Sub(m.marks[0].at), markFor) // a mark from before a stall: what came since came after it
	if since < markEvery {
		return 0
	}
	return float64(m.total-m.marks[0].total) / since.Seconds()
}
