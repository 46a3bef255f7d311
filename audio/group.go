package audio

// MaxChannels is how many channels of a microphone are told apart.
const MaxChannels = maxChannels

// A Group is what several channels of a microphone heard in the same 20 ms. It is passed by value, like a Frame.
type Group struct {
	Channels int                // that there are: 1 to MaxChannels
	Frames   [MaxChannels]Frame // only the first of them count
}

// All are the frames of the channels that there are. They share the group's memory.
func (g *Group) All() []Frame { return g.Frames[:g.Channels] }
