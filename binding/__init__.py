"""The helper package of the book *The Limits of Binding in Dual Encoders*.

One module an idea, in floors; a module imports only from floors below its own:

1. ``scenes`` · ``numerics`` · ``claims`` · ``files``
2. the mathematics: ``score`` · ``ideal`` · ``radon`` · ``dichotomies`` · ``codes`` · ``depth`` · ``gauge`` · ``exposure`` ·
   ``throttle`` · ``contrast`` · ``frontier`` · ``correlation`` · ``information`` · ``channels`` · ``tables`` · ``pooling``
3. the measured world: ``embeddings`` · ``captions`` · ``synthetic`` · ``runs`` · ``colourshape`` · ``probe_data`` ·
   ``probe_heads`` · ``coverage_split``, then ``encoders`` · ``towers`` · ``probes`` · ``structure`` · ``vit`` ·
   ``activations`` · ``object_encoders``, then ``models`` · ``dual`` · ``audit`` · ``sugarcrepe`` · ``corpus`` · ``training``
   · ``vision`` · ``calibration`` · ``binding_functions`` · ``emergence``
4. what people see: ``plots`` · ``widgets`` · ``pages`` · ``cli``
"""

__version__ = "0.1.0"
