package dialog

// A ModelError is why a model gave no answer, or no whole one. Its kind decides what the user is told. Err is for the
// log; it holds no key and nothing that was said.
type ModelError struct {
	Kind ModelErrorKind
	Err  error
}

func (e *ModelError) Error() string { return string(e.Kind) + ": " + e.Err.Error() }
func (e *ModelError) Unwrap() error { return e.Err }

// A ModelErrorKind says what went wrong with a model, as far as that makes a difference to the user.
type ModelErrorKind string

// What can go wrong with a model.
const (
	NoKey          ModelErrorKind = "no key"           // none is configured, or its file can't be read
	WrongKey       ModelErrorKind = "wrong key"        // the server doesn't accept it
	NoCredit       ModelErrorKind = "no credit"        // the account has run out of money or quota
	UnknownModel   ModelErrorKind = "unknown model"    // the server doesn't have it
	Unreachable    ModelErrorKind = "unreachable"      // no connection to the server
	RateLimited    ModelErrorKind = "rate limited"     // too many requests
	ServerFault    ModelErrorKind = "server fault"     // overloaded, broken, or not a model server
	Stalled        ModelErrorKind = "stalled"          // no answer, or no more of it, within its time
	CutOff         ModelErrorKind = "cut off"          // the connection broke within the answer
	ContextTooLong ModelErrorKind = "context too long" // the conversation doesn't fit into the model
	Refused        ModelErrorKind = "refused"          // the model or its provider refuses to answer this
	BadRequest     ModelErrorKind = "bad request"      // the server doesn't understand the request, such as a model without tools
)
