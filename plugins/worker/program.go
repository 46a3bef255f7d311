package worker

// A Program is another program than this one which is to be a worker, such as an interpreter. It gets a sandbox like ours,
// as far as that can be: it may read files, since interpreters load what scripts import.
type Program struct {
	Path string   `json:"path"`
	Args []string `json:"args"` // the first is the name that it gets
	Env  []string `json:"env"`

	Run     []string `json:"run"`     // files that it may run: itself, and what loads its libraries
	Read    []string `json:"read"`    // files, and directories with all that is below them, that it may read
	Memory  int64    `json:"memory"`  // that it may write to, in bytes; 0: no limit
	Network bool     `json:"network"` // it may connect to others by TCP, and send by UDP
	Ports   []uint16 `json:"ports"`   // of TCP, where that can be restricted
}
