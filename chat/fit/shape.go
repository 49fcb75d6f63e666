package fit

import "github.com/ingotml/ingot/chat"

// System says where a template accepts system messages.
type System string

// The places of system messages.
const (
	Anywhere System = "anywhere"
	First    System = "first"   // one, at the start
	Nowhere  System = "nowhere" // the template refuses them, or leaves them out
)

// Shape is what a template accepts. Something counts as accepted only if its text shows in the prompt.
type Shape struct {
	Assistant  string // the role of the model's messages, for templates that call it bot or model
	Parts      bool   // a text must be a list of parts
	System     System
	SystemOnly bool // a system message without a user turn
	SystemLost bool // it shows only if the last turn is the user's
	Users      bool // several user turns in a row
	Assistants bool // several messages of the model in a row
	EmptyUser  bool // the text of a user turn may be empty
	NoUser     bool // the model's messages need no user turn

	Offered, History Calls // tool calls, with tools in the request and without

	Thinking Thinking
}

// Calls is what a template accepts in a request with tools, or without.
type Calls struct {
	Greeting  bool // the first turn may be a text of the model
	First     bool // the first turn may be a call
	Shown     bool // calls are shown as such
	Results   bool // messages of the role tool are shown
	Null      bool // the content beside calls must be null, not ""
	Text      bool // the arguments must be JSON text, not an object
	ShortIDs  bool // ids of calls must be nine letters and digits, as Mistral's
	Several   bool // a message may have several calls
	Beside    bool // a message may have text and calls
	Unnamed   bool // a result may lack a call
	Open      bool // a call may lack a result
	UserAfter bool // a user turn may follow a result
	Gap       bool // an empty message of the model may stand between a result and a user turn
}

// anything is the shape of a template that accepts every conversation.
func anything() *Shape {
	c := Calls{Greeting: true, First: true, Shown: true, Results: true, Several: true, Beside: true, Unnamed: true,
		Open: true, UserAfter: true}
	return &Shape{Assistant: chat.Assistant, System: Anywhere, SystemOnly: true, Users: true, Assistants: true,
		EmptyUser: true, NoUser: true, Offered: c, History: c, Thinking: Thinking{Switch: true, Levels: levels}}
}

// strict is the shape that every template accepts, if it accepts any conversation of several turns: turns of text that
// alternate, beginning with the user.
func (s *Shape) strict() *Shape {
	return &Shape{Assistant: s.Assistant, Parts: s.Parts, System: Nowhere, EmptyUser: s.EmptyUser}
}

// calls returns what is accepted in a request that offers tools, or not.
func (s *Shape) calls(offered bool) Calls {
	if offered {
		return s.Offered
	}
	return s.History
}

// roleUser and the others are the roles of a conversation, beside chat.Assistant.
const (
	roleUser   = "user"
	roleSystem = "system"
	roleTool   = "tool"
)

// isModels reports whether a message is the model's.
func isModels(m chat.Message) bool { return m.Role == chat.Assistant }
