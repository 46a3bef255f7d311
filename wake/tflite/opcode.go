package tflite

import "fmt"

// An opcode is an operator, by its number in the file format.
type opcode int

// The operators of the streaming int8 models, then those that only the float32 models have.
const (
	opConcatenation   opcode = 2
	opConv2D          opcode = 3
	opDepthwiseConv2D opcode = 4
	opFullyConnected  opcode = 9
	opLogistic        opcode = 14
	opReshape         opcode = 22
	opStridedSlice    opcode = 45
	opSplitV          opcode = 102
	opQuantize        opcode = 114
	opCallOnce        opcode = 129
	opVarHandle       opcode = 142
	opReadVariable    opcode = 143
	opAssignVariable  opcode = 144

	opAdd               opcode = 0
	opMaxPool2D         opcode = 17
	opMul               opcode = 18
	opReLU              opcode = 19
	opPad               opcode = 34
	opTranspose         opcode = 39
	opMean              opcode = 40
	opSub               opcode = 41
	opDiv               opcode = 42
	opSqueeze           opcode = 43
	opMaximum           opcode = 55
	opMinimum           opcode = 57
	opGreaterEqual      opcode = 62
	opExpandDims        opcode = 70
	opLog               opcode = 73
	opRsqrt             opcode = 76
	opReduceMax         opcode = 82
	opLeakyReLU         opcode = 98
	opSquaredDifference opcode = 99
	opIf                opcode = 118
	opBatchMatMul       opcode = 126
)

var opNames = map[opcode]string{
	opConcatenation: "CONCATENATION", opConv2D: "CONV_2D", opDepthwiseConv2D: "DEPTHWISE_CONV_2D",
	opFullyConnected: "FULLY_CONNECTED", opLogistic: "LOGISTIC", opReshape: "RESHAPE", opStridedSlice: "STRIDED_SLICE",
	opSplitV: "SPLIT_V", opQuantize: "QUANTIZE", opCallOnce: "CALL_ONCE", opVarHandle: "VAR_HANDLE",
	opReadVariable: "READ_VARIABLE", opAssignVariable: "ASSIGN_VARIABLE",

	opAdd: "ADD", opMaxPool2D: "MAX_POOL_2D", opMul: "MUL", opReLU: "RELU", opPad: "PAD", opTranspose: "TRANSPOSE",
	opMean: "MEAN", opSub: "SUB", opDiv: "DIV", opSqueeze: "SQUEEZE", opMaximum: "MAXIMUM", opMinimum: "MINIMUM",
	opGreaterEqual: "GREATER_EQUAL", opExpandDims: "EXPAND_DIMS", opLog: "LOG", opRsqrt: "RSQRT",
	opReduceMax: "REDUCE_MAX", opLeakyReLU: "LEAKY_RELU", opSquaredDifference: "SQUARED_DIFFERENCE", opIf: "IF",
	opBatchMatMul: "BATCH_MATMUL",

	// Not known here; so that an error can name them.
	1: "AVERAGE_POOL_2D", 6: "DEQUANTIZE", 25: "SOFTMAX", 28: "TANH", 36: "GATHER", 47: "EXP", 49: "SPLIT", 53: "CAST",
	65: "SLICE", 74: "SUM", 75: "SQRT", 77: "SHAPE", 78: "POW", 83: "PACK", 88: "UNPACK", 119: "WHILE",
	44: "UNIDIRECTIONAL_SEQUENCE_LSTM", 117: "HARD_SWISH", 150: "GELU",
}

func (c opcode) String() string {
	if n, ok := opNames[c]; ok {
		return n
	}
	return fmt.Sprintf("operator %d", int(c))
}
