package snapshot

// Peak is the most memory that was in use during a step, and the size of the step's input as the program marked it.
type Peak struct {
	Step   int64
	Phase  string // "" if the program marked none
	Kind   DeviceKind
	Index  int   // of the device
	Batch  int64 // samples; 0 if unknown
	Length int64 // length of a sequence; 0 if unknown
	Bytes  Bytes
}
