"""The closing phrases that `goalmode.context.phrases` searches for: data, as regular expressions.

They are matched against text in lower case with single blanks, full-width forms made narrow and traditional
characters made simplified. A phrase must speak of the whole ("all tasks are done", 全部完成): "chapter 3 is done"
is a fact worth keeping.
"""

from __future__ import annotations

_ANY, _MANY = "{0,6}", "{1,6}"
"""Words that only add weight, in a row. Without a bound, a text that repeats them costs the square of its length."""

_DONE = r"(?:done|completed?|finished|finali[sz]ed|accomplished|achieved|delivered|fulfilled|resolved)"
_MET = r"(?:done|completed?|finished|finali[sz]ed|accomplished|achieved|delivered|fulfilled|met|satisfied|addressed)"
_ARE = r"(?:is |are |was |were |has been |have been |had been )"
_NOW = r"(?:now |all |fully |already |successfully |officially |entirely |totally |100 ?% )" + _ANY
_WHOLE = r"(?:task|work|goal|objective|project|mission|job|assignment|request|delivery|deliverables?)"
_PARTS = (
    r"(?:tasks?|work|items?|steps?|goals?|objectives?|requirements?|deliverables?|criteria|phases?|milestones?"
    r"|features?|sections?|chapters?|changes|checks|parts?|points?|issues?|todos?|to-dos?)"
)

ENGLISH = (
    rf"all {_ARE}?{_NOW}{_DONE}",
    rf"all (?:of )?(?:the |my |our |your |these )?(?:\w+ ){{0,3}}?{_PARTS} {_ARE}?{_NOW}{_MET}",
    rf"every (?:\w+ ){{0,2}}?{_PARTS} {_ARE}{_NOW}{_MET}",
    rf"every ?thing(?:'s)? {_ARE}?{_NOW}(?:{_DONE}|in place|wrapped up|as requested)",
    rf"(?:task|project|mission|job|goal|objective|delivery|assignment) {_NOW}"
    r"(?:completed?|accomplished|achieved|finished)",
    r"(?:job|task) (?:well )?done",
    rf"{_WHOLE} {_ARE}{_NOW}{_DONE}",
    r"(?:fully|100 ?%) (?:completed?|done|finished|delivered)",
    r"(?:completed?|finished|delivered|done) in full",
    rf"(?:completed|finished|delivered|done with) (?:everything|all (?:of )?(?:the |my |our )?(?:\w+ )?{_PARTS})",
    rf"(?:completed|finished|delivered|done with) (?:the|this|your) (?:whole |entire )?{_WHOLE}",
    r"final (?:delivery|hand-?over|hand-?off|wrap-?up|close-?out|sign-?off)",
    r"(?:closing|wrap-?up) (?:report|summary|statement|remarks)",
    rf"nothing (?:else |more |further |left |remaining |is left |remains ){_MANY}"
    r"(?:to do|to be done|to fix|to add|to finish)",
    r"nothing (?:else|more|further) (?:is )?(?:needed|required|necessary|remains)",
    r"nothing (?:remains|remaining|is left|outstanding|is outstanding)",
    r"no (?:further|more|additional|remaining|outstanding) (?:\w+ )?"
    r"(?:work|actions?|steps?|tasks?|items?|changes|edits|improvements)",
    rf"(?:i|we)(?:'m| am|'re| are| have|'ve) (?:all |now ){_ANY}(?:done|finished)"
    r"(?= ?(?:[.,!;:]|$|here|with (?:every|all|the|this)))",
    r"(?:wraps|wrapped|wrapping) (?:things |everything |it |this |that |all )?up",
    r"(?:that's|that is|this is) (?:all|it) (?:for now|for this|done|folks)",
    r"(?:this|that|which) concludes",
    rf"(?:concludes|completes) (?:the|this|our|my|your) {_WHOLE}",
    r"ready (?:for|to be) (?:final )?"
    r"(?:delivery|delivered|hand-?over|hand-?off|sign-?off|submission|submitted|shipped)",
    r"ready to (?:ship|deliver|submit|hand (?:over|off))",
    r"sign(?:ing|ed) off",
    r"all set",
    r"good to go",
    r"done and dusted",
    r"case closed",
    r"(?:brought|came|come) to (?:a (?:successful )?close|completion|its conclusion)",
    r"closing (?:this|things) out",
)

ENGLISH_DENIALS = ("not ", "n't ", "never ", "not yet ", "yet to be ", "before ")
"""What turns the phrase after it into its opposite."""

_YI = "(?:已|已经|均|都|皆|全部|全|也|圆满|顺利|成功|正式|现已|宣告|宣布)" + _ANY
_END = "(?:完成|完毕|完工|结束|达成|实现|交付|收尾|搞定|就绪)"

CHINESE = (
    f"(?:已|已经|均已|都已|都已经|现已|也已)?全部(?:都|已|已经|圆满|顺利|成功|正式){_ANY}{_END}",
    f"全都{_YI}{_END}",
    "(?:已|已经)全部",
    f"(?:均|都|皆)(?:已|已经)(?:圆满|顺利|成功|全部){_ANY}{_END}",
    f"(?:所有|全部|各项|一切)[^,。.;!?\n]{{0,12}}?(?:已|已经|均|都|皆|全部){_MANY}(?:圆满|顺利|成功|正式){_ANY}{_END}",
    f"(?:一切|万事)(?:已|已经|都|均){_ANY}(?:就绪|完成|完毕|俱备|妥当)",
    f"(?<!子)(?:任务|目标|工作|项目|使命|交付|交付物){_YI}{_END}",
    "(?<!子)(?:任务|工作|项目)(?:已|已经)?(?:关闭|终结|结项|结案)",
    "最终(?:版|版本)?的?交付",
    "(?:已|已经)?(?:成功|圆满|顺利)?完成了?(?:全部|所有|整个|本次|这次|一切|最终)",
    "(?:圆满|完美|顺利|胜利)[的地]?(?:完成|结束|收官|收尾|落幕|达成|交付)",
    "大功告成|功德圆满|圆满|收口|收工|收官|完工|竣工|结项|结案|杀青|画上了?句号",
    "(?:已|已经)(?:收尾|闭环)",
    "告一段落|到此(?:为止|结束|完成)|至此(?:结束|完成|全部|任务|所有|为止)",
    f"(?:无需|不需要|不必|没必要|无须)(?:再|任何|进一步|后续|继续|其他|额外){_MANY}的?(?:进行)?"
    "(?:操作|处理|工作|修改|执行|动作|改动|行动|步骤|改进|检查)",
    f"(?:没有|无|再无|已无)(?:任何|其他|其它|剩余|遗留|更多|后续|待处理|未完成|未尽|待办){_MANY}的?"
    "(?:任务|事项|工作|问题|待办|内容|项)",
    "(?:100 ?%|百分之百|百分百)地?(?:完成|达成|交付)|完成度(?:为|达到|达|:)? ?100 ?%",
    "可以(?:交付|收尾|结束|提交|验收)了|可(?:直接)?交付使用",
    "(?:总结|完工|结项|完成|交付)报告如下|以上(?:就是|即为|为)(?:全部|最终|本次)",
)

CHINESE_DENIALS = ("未", "没", "非", "没有", "是否", "不是", "不算", "未能", "不能", "如果", "若")
CHINESE_OPEN = "(?!之?[前后]|以[前后]|度(?!为|达|:| ?1)|率|情况|标准|条件|与否|状态|的?时)"
"""What must not follow: it makes a condition or a measure of the phrase before it."""

ALONE = (
    r"(?:it's |it is |and )?(?:done|finished|completed?|the end|over and out)",
    "完成了?|已完成|已经完成|完毕|搞定了?|结束了?",
)
"""What closes only where it is all that a line or a sentence says."""

ANCHORS = (
    *("done", "complet", "finish", "finali", "accomplish", "achiev", "deliver", "fulfil", "resolved", " met"),
    *("satisfied", "addressed", "every", "final ", "closing", "wrap", "nothing", "no further ", "no more "),
    *("no additional ", "no remaining ", "no outstanding ", "'s all", "'s it", " is all", " is it", "conclu"),
    *("ready to ", "ready for ", "signing off", "signed off", "all set", "good to go", " close"),
    *(
        "完",
        "结",
        "达成",
        "实现",
        "交付",
        "收",
        "搞定",
        "就绪",
        "全部",
        "俱备",
        "妥当",
        "关闭",
        "落幕",
        "大功告成",
    ),
    *(
        "圆满",
        "竣工",
        "杀青",
        "画上",
        "闭环",
        "告一段落",
        "到此",
        "至此",
        "无",
        "不需要",
        "不必",
        "没必要",
        "没有",
    ),
    *("提交", "验收", "报告如下", "以上"),
)
"""Words of which each phrase of `ENGLISH` and `CHINESE` holds at least one: most texts hold none, and are done with."""

ALONE_ANCHORS = ("done", "finish", "complet", "the end", "over and out", "完", "搞定", "结束")
"""The same for `ALONE`."""

SIMPLIFIED = str.maketrans(
    "務終經圓滿無標達實現結順項畫號餘遺後沒條狀態頭總報關閉當並勝還須額進處執動驟檢測",
    "务终经圆满无标达实现结顺项画号余遗后没条状态头总报关闭当并胜还须额进处执动骤检测",
)
