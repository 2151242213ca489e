"""The helper package of the book *The Limits of Binding in Dual Encoders*.

One module an idea, in floors; a module imports only from floors below its own:

1. ``scenes`` · ``numerics`` · ``claims``
2. the mathematics: ``ideal`` · ``radon``
3. the measured world: ``encoders``
4. what people see: ``plots`` · ``widgets`` · ``cli``
"""

__version__ = "0.1.0"
